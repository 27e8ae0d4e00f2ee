"""What is replaced inside Faust, and whether Faust is still what it was when it was replaced."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, TopicAuthorizationFailedError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streams.app.assembly import make_app
from streams.app.faust_overrides import RecordBatch, coordination
from streams.app.faust_overrides.consumer import BatchScheduler, Consumer, ConsumerThread
from streams.app.faust_overrides.pins import OVERRIDES, Override, fingerprint
from streams.app.settings import Settings
from tests.unit.app.fakes import FakeRecord


@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_the_stock_method_is_the_one_that_was_read(override: Override) -> None:
    now = fingerprint(override.owner, override.name)
    assert now == override.pin, (
        f"{override} has changed. Read it, see whether what replaces it is still right, and pin it as {now}. "
        f"It was replaced because: {override.reason.splitlines()[0]}"
    )


@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_every_override_says_why(override: Override) -> None:
    assert len(override.reason) > 20


def test_there_is_something_to_pin() -> None:
    assert len(OVERRIDES) >= 10


def test_a_changed_method_is_noticed() -> None:
    class Stock:
        def method(self) -> int:
            return 1

    class Changed:
        def method(self) -> int:
            return 2

    assert fingerprint(Stock, "method") != fingerprint(Changed, "method")


def test_faust_starts_no_producer_of_its_own(tmp_path: Path) -> None:
    """All that is written goes through the shards; another producer would be one more that may find no broker."""
    fleet: Any = None
    app = make_app(Settings(kafka="localhost:1"), tmp_path, fleet)
    strategy: Any = app.boot_strategy
    assert not list(strategy.kafka_producer())
    assert list(strategy.kafka_consumer())


class Record(FakeRecord):
    topic = "runs.requests"
    partition = 3
    timestamp_type = 0


def test_a_partitions_records_are_one_event() -> None:
    records = [Record(4, b"a"), Record(7, b"b")]
    tp, empty = TP("runs.requests", 3), TP("runs.requests", 4)
    scheduler: Any = BatchScheduler
    ((where, batch),) = scheduler().iterate({tp: records, empty: []})
    assert where == tp
    assert isinstance(batch, RecordBatch)
    assert (batch.topic, batch.partition, batch.offset, batch.value) == ("runs.requests", 3, 7, records)


class Acks:
    """As much of a consumer as its offsets need."""

    def __init__(self, *acked: int) -> None:
        self._acked = {TP("t", 0): list(acked)}
        self._acked_index = {TP("t", 0): set(acked)}


def test_the_offset_to_commit_follows_the_last_that_was_acked() -> None:
    acks: Any = Acks(3, 9, 5)
    assert Consumer._new_offset(acks, TP("t", 0)) == 10
    assert Consumer._new_offset(acks, TP("t", 0)) is None


class Starts:
    """As much of a consumer's thread as its start needs: it fails in these ways, then works."""

    def __init__(self, *failures: KafkaError) -> None:
        self.failures = list(failures)
        self.started = self.stopped = 0
        self.should_stop = False

    def _ensure_consumer(self) -> Any:
        return self

    async def start(self) -> None:
        self.started += 1
        if self.failures:
            raise self.failures.pop(0)

    async def stop(self) -> None:
        self.stopped += 1

    async def sleep(self, _seconds: float) -> None:
        self.should_stop = not self.failures and self.stopped > 2


@pytest.fixture
def stock_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def on_start(self: Starts) -> None:
        await self.start()

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "on_start", on_start)


def thread_of(starts: Starts) -> Any:
    thread: Any = object.__new__(
        type("Thread", (ConsumerThread,), {"should_stop": property(lambda _: starts.should_stop)})
    )
    for name in ("start", "stop", "sleep", "_ensure_consumer"):
        setattr(thread, name, getattr(starts, name))
    return thread


def test_a_consumer_that_finds_no_broker_is_started_again(stock_start: None) -> None:
    starts = Starts(KafkaConnectionError("nobody"), KafkaConnectionError("nobody"))
    asyncio.run(thread_of(starts).on_start())
    assert (starts.started, starts.stopped) == (3, 2)  # none is left open


def test_a_consumer_that_cannot_be_started_is_not_tried_again(stock_start: None) -> None:
    starts = Starts(TopicAuthorizationFailedError("no"))
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(thread_of(starts).on_start())
    assert starts.started == 1


def test_a_consumer_that_is_stopped_meanwhile_is_not_tried_again(stock_start: None) -> None:
    starts = Starts(*(KafkaConnectionError("nobody") for _ in range(3)))
    asyncio.run(thread_of(starts).on_start())
    assert (starts.started, starts.stopped) == (3, 3)


class Coordinator:
    """As much of aiokafka's coordinator as is asked."""

    def __init__(self, *errors: KafkaError, ended: bool = False) -> None:
        self.errors = list(errors)
        self.rejoins = 0
        self._coordination_task = SimpleNamespace(done=lambda: ended)

    def check_errors(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def request_rejoin(self) -> None:
        self.rejoins += 1


def listen(coordinator: Coordinator | None, *, closed: bool = False) -> None:
    consumer: Any = SimpleNamespace(_coordinator=coordinator, _closed=closed)
    coordination.listen(consumer)


def test_after_an_error_of_the_group_it_is_joined_again(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Coordinator(KafkaError("unknown to the heartbeat"))
    listen(coordinator)
    listen(coordinator)
    assert coordinator.rejoins == 1
    assert caplog.text.count("unknown to the heartbeat") == 1


@pytest.mark.parametrize("kind", coordination.HOPELESS)
def test_a_group_that_cannot_be_joined_is_not_waited_for(kind: type[KafkaError]) -> None:
    with pytest.raises(kind):
        listen(Coordinator(kind("no")))


def test_a_coordination_that_has_ended_is_not_waited_for() -> None:
    with pytest.raises(KafkaError):
        listen(Coordinator(KafkaError("a bug"), ended=True))


def test_a_consumer_that_is_not_there_yet_or_closed_has_nothing_to_tell() -> None:
    coordination.listen(None)
    listen(None)
    listen(Coordinator(KafkaError("closing")), closed=True)


def test_a_member_that_fetches_nothing_stays_in_its_group(tmp_path: Path) -> None:
    """A spare process would leave after 1,000 s by Faust's default, and never come back when it is needed."""
    app = make_app(Settings(), tmp_path, fleet=SimpleNamespace())  # type: ignore[arg-type]
    assert app.conf.broker_max_poll_interval > 365 * 86_400


def test_subscribing_to_the_same_topics_again_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []

    async def subscribe(_self: object, topics: frozenset[str]) -> None:
        asked.append(topics)

    stock = next(each.owner for each in OVERRIDES if each.name == "subscribe")
    monkeypatch.setattr(stock, "subscribe", subscribe)
    consumer = Consumer.__new__(Consumer)
    consumer._subscribed = frozenset()

    async def scenario() -> None:
        for topics in ({"a", "b"}, {"b", "a"}, {"a"}):
            await consumer.subscribe(topics)

    asyncio.run(scenario())
    assert asked == [{"a", "b"}, {"a"}]
