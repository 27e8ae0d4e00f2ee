from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.app import transaction
from streams.app.faults import POINTS
from streams.app.limits import TopicLimits
from streams.app.transaction import KafkaWriter, StepRecords
from streams.core.effects import Dispatch
from streams.errors import FairstreamError, NotAuthorized, OwnershipLost, StepAborted, Unavailable
from streams.intake import Forward
from streams.kafka import KafkaSettings
from streams.wire import FORWARDED, OVERHEAD_BYTES, encode_dispatch
from tests.unit.app.fakes import NAMES

FENCED = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT, "not yet", retriable=True)
MUST_ABORT = KafkaError(KafkaError._MSG_TIMED_OUT, "a record was lost", txn_requires_abort=True)
BROKEN = KafkaError(KafkaError._STATE, "no transaction")
LOST = SystemError("<method 'flush'> returned NULL without setting an exception")

RECORDS = StepRecords(
    positions=(b"p", b"positions"),
    rows=[(b"a", b"row"), (b"b", None)],
    dispatches=[(b"run", b"dispatch")],
    rejections=[(None, b"rejection")],
    forwards=[Forward(NAMES.requests, 3, b"t", b"forward", 77, [(FORWARDED, b"here")])],
    journal=(b"0", b"journal"),
)


class FakeProducer:
    """librdkafka's producer as far as a writer uses it. Each verb fails as told, in order."""

    def __init__(self, conf: dict[str, Any]) -> None:
        self.conf = conf
        self.calls: list[str] = []
        self.sent: list[tuple[Any, ...]] = []
        self.failures: dict[str, list[BaseException | None]] = {}
        self.in_queue = 0
        self.lost: list[KafkaError] = []
        self.lost_record: Any = SimpleNamespace(topic=lambda: NAMES.state)

    def _call(self, verb: str) -> None:
        self.calls.append(verb)
        planned = self.failures.get(verb)
        failure = planned.pop(0) if planned else None
        if failure is not None:
            raise failure

    def init_transactions(self, _timeout: float) -> None:
        self._call("init")

    def list_topics(self, topic: str, _timeout: float) -> Any:
        self._call("list")
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=dict.fromkeys(range(3)))})

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self, _timeout: float) -> None:
        self._call("commit")

    def abort_transaction(self, _timeout: float) -> None:
        self._call("abort")

    def produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, **more: Any) -> None:
        self.sent.append((topic, value, key, partition, *more.values()))
        self._call("produce")

    def flush(self, _timeout: float) -> int:
        for error in self.lost:
            self.conf["on_delivery"](error, self.lost_record)
        self._call("flush")
        return self.in_queue


class Clock:
    """Every look at it is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[KafkaWriter, FakeProducer]]:
    def build(limits: TopicLimits | None = None) -> tuple[KafkaWriter, FakeProducer]:
        made: list[FakeProducer] = []

        def producer(conf: dict[str, Any]) -> FakeProducer:
            made.append(FakeProducer(conf))
            return made[-1]

        monkeypatch.setattr(transaction, "Producer", producer)
        monkeypatch.setattr(transaction, "clock", Clock())
        writer = KafkaWriter(
            KafkaSettings(servers="nowhere:9092"),
            NAMES,
            shard=2,
            transactional_id="fairstream-2",
            timeout_ms=5_000,
            limits=limits,
        )
        return writer, made[0]

    return build


Make = Callable[..., tuple[KafkaWriter, FakeProducer]]


def test_the_order_of_a_step_is_rows_sends_journal_positions(make: Make) -> None:
    writer, producer = make()
    writer.write(RECORDS)
    assert producer.sent == [
        ("runs.state", b"row", b"a", 2),
        ("runs.state", None, b"b", 2),
        ("runs.dispatch", b"dispatch", b"run", 0),
        ("runs.rejected", b"rejection", None, -1),
        ("runs.requests", b"forward", b"t", 3, 77, [(FORWARDED, b"here")]),
        ("runs.journal", b"journal", b"0", 2),
        ("runs.state", b"positions", b"p", 2),
    ]
    assert [call for call in producer.calls if call != "produce"] == ["begin", "flush", "commit"]


def test_the_dispatches_of_a_step_go_to_one_partition_and_those_of_a_large_step_to_some(make: Make) -> None:
    """A partition costs a transaction as much as a hundred records, and a share group hands out 2,000 of one."""
    writer, producer = make()
    writer.fence()

    def places(number: int) -> list[int]:
        producer.sent.clear()
        writer.write(StepRecords((b"p", b"positions"), dispatches=[(b"run", b"dispatch")] * number))
        used = Counter(partition for topic, _, _, partition in producer.sent if topic == NAMES.dispatch)
        assert max(used.values()) <= 500
        return list(used)

    assert [places(number) for number in (1, 1, 500, 1_200)] == [[0], [1], [2], [0, 1, 2]]


def test_the_producer_is_transactional_and_places_keys_as_kafka_does(make: Make) -> None:
    _, producer = make()
    wanted = {
        "transactional.id": "fairstream-2",
        "transaction.timeout.ms": 5_000,
        "partitioner": "murmur2_random",
        "delivery.report.only.error": True,
    }
    assert wanted.items() <= producer.conf.items()


def test_only_the_positions_are_written_to_confirm_a_shard(make: Make) -> None:
    writer, producer = make()
    writer.write(StepRecords((b"p", b"positions")))
    assert producer.sent == [("runs.state", b"positions", b"p", 2)]


@pytest.mark.parametrize("verb", ["init", "commit", "abort"])
def test_what_may_be_repeated_is_repeated(make: Make, verb: str) -> None:
    writer, producer = make()
    producer.failures[verb] = [KafkaException(TIMED_OUT), LOST, None]
    if verb == "init":
        writer.fence()
    elif verb == "commit":
        writer.write(RECORDS)
    else:
        producer.failures["commit"] = [KafkaException(MUST_ABORT)]
        with pytest.raises(StepAborted, match="a record was lost"):
            writer.write(RECORDS)
    assert producer.calls.count(verb) == 3


def test_a_record_that_was_not_delivered_aborts_the_step_before_its_commit(make: Make) -> None:
    writer, producer = make()
    producer.lost = [MUST_ABORT]
    with pytest.raises(StepAborted):
        writer.write(RECORDS)
    assert "commit" not in producer.calls
    producer.lost = []
    writer.write(RECORDS)  # the same writer goes on
    assert producer.calls[-1] == "commit"


@pytest.mark.parametrize("verb", ["begin", "produce", "flush"])
@pytest.mark.parametrize("failure", [KafkaException(BROKEN), LOST])
def test_a_failure_before_the_commit_aborts(make: Make, verb: str, failure: BaseException) -> None:
    writer, producer = make()
    producer.failures[verb] = [failure]
    with pytest.raises(StepAborted):
        writer.write(RECORDS)
    assert producer.calls[-1] == "abort"
    assert "commit" not in producer.calls


@pytest.mark.parametrize(
    ("verb", "failures"),
    [
        ("begin", [KafkaException(FENCED)]),
        ("commit", [KafkaException(FENCED)]),
        ("commit", [LOST, KafkaException(FENCED)]),
    ],
)
def test_a_fenced_writer_has_lost_the_shard(make: Make, verb: str, failures: list[BaseException | None]) -> None:
    writer, producer = make()
    producer.failures[verb] = failures
    with pytest.raises(OwnershipLost, match="another scheduler"):
        writer.write(RECORDS)


def test_a_writer_whose_abort_is_fenced_has_lost_the_shard(make: Make) -> None:
    writer, producer = make()
    producer.failures = {"flush": [LOST], "abort": [KafkaException(FENCED)]}
    with pytest.raises(OwnershipLost):
        writer.write(RECORDS)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "no transaction", fatal=True)), NotAuthorized),
        (KafkaException(FENCED), OwnershipLost),
    ],
)
def test_a_missing_right_is_not_hidden_by_the_abort_of_what_never_began(
    make: Make, failure: BaseException, kind: type[FairstreamError]
) -> None:
    writer, producer = make()
    producer.lost = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    producer.failures["abort"] = [failure]
    with pytest.raises(kind) as caught:
        writer.write(RECORDS)
    assert kind is OwnershipLost or NAMES.state in str(caught.value)


def test_a_transaction_that_was_given_up_is_aborted_by_its_reason_not_by_what_became_of_its_records(make: Make) -> None:
    writer, producer = make()
    producer.lost = [KafkaError(KafkaError._PURGE_QUEUE)]
    reason = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no partition added", txn_requires_abort=True)
    producer.failures["begin"] = [None, KafkaException(reason)]
    with pytest.raises(StepAborted, match="no partition added") as caught:
        writer.write(RECORDS)
    assert isinstance(caught.value.__cause__, NotAuthorized)
    assert producer.calls[-1] == "abort"


def test_what_cannot_be_mended_is_an_error_of_its_own(make: Make) -> None:
    writer, producer = make()
    producer.failures["commit"] = [KafkaException(BROKEN)]
    with pytest.raises(FairstreamError) as caught:
        writer.write(RECORDS)
    assert not isinstance(caught.value, StepAborted | OwnershipLost)


@pytest.mark.parametrize("code", [KafkaError.INVALID_TXN_STATE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER])
@pytest.mark.parametrize("fatal", [True, False])
def test_a_writer_that_kafka_has_forgotten_does_not_try_for_ever(make: Make, code: int, fatal: bool) -> None:
    writer, producer = make()
    producer.failures["commit"] = [KafkaException(KafkaError(code, "not like this", fatal=fatal))] * 100
    with pytest.raises(Unavailable, match="only a new writer can tell whether the step was written: not like this"):
        writer.write(RECORDS)
    assert producer.calls.count("commit") == 1


@pytest.mark.parametrize("verb", ["init", "commit"])
def test_patience_ends_a_little_after_the_transaction(make: Make, verb: str) -> None:
    writer, producer = make()
    producer.failures[verb] = [KafkaException(TIMED_OUT)] * 100
    with pytest.raises(Unavailable, match="not done after 15 s: not yet"):
        writer.fence() if verb == "init" else writer.write(RECORDS)
    assert producer.calls.count(verb) == 15


def test_patience_is_for_the_flush_and_the_commit_together(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction has one timeout, and whoever asks for our health counts on an end (`longest_write_s`)."""
    writer, producer = make()
    in_queue = iter([1] * 10)
    monkeypatch.setattr(producer, "flush", lambda _timeout: next(in_queue, 0))
    producer.failures["commit"] = [KafkaException(TIMED_OUT)] * 100
    with pytest.raises(Unavailable, match="not done after 15 s"):
        writer.write(RECORDS)
    assert producer.calls.count("commit") == 5


def test_a_flush_that_does_not_end_is_given_up_too(make: Make) -> None:
    writer, producer = make()
    producer.in_queue = 1
    with pytest.raises(Unavailable, match="Kafka does not answer"):
        writer.write(RECORDS)


@pytest.mark.parametrize("verb", ["init", "commit", "flush"])
def test_who_gives_up_waits_no_longer(make: Make, verb: str) -> None:
    writer, producer = make()
    producer.failures[verb] = [KafkaException(TIMED_OUT)] * 2
    producer.in_queue = 1 if verb == "flush" else 0
    if verb == "flush":
        producer.failures = {}
    writer.give_up()
    with pytest.raises(Unavailable, match="given up"):
        writer.fence() if verb == "init" else writer.write(RECORDS)
    assert producer.calls.count(verb) == 1


class Points:
    """Faults that only remember where they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def at(self, point: str, _flush: Callable[[], object]) -> None:
        self.asked.append(point)


def test_faults_are_asked_at_every_point_in_order(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, _ = make()
    points = Points()
    monkeypatch.setattr(writer, "_faults", points)
    writer.write(RECORDS)
    assert tuple(points.asked) == POINTS


def limits_of(**stated: int) -> TopicLimits:
    made = TopicLimits(NAMES, lambda: {getattr(NAMES, topic): most for topic, most in stated.items()})
    made.refresh()
    return made


DISPATCH = encode_dispatch(
    Dispatch(1, "acme", "r-1", "w", "default", 1, 5, 1_000, None, b'{"payload":1}', 0, 1, 0, 0), 0, 1, 1
)


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE])
def test_a_record_that_kafka_finds_too_large_aborts_the_step_and_is_noted(make: Make, code: int) -> None:
    limits = TopicLimits(NAMES)
    writer, producer = make(limits)
    producer.lost = [KafkaError(code)]
    producer.lost_record = SimpleNamespace(topic=lambda: NAMES.dispatch, key=lambda: b"r-1", value=lambda: DISPATCH * 2)
    with pytest.raises(StepAborted):
        writer.write(RECORDS)
    assert producer.calls[-1] == "abort"
    assert [(each.topic, each.key, each.value) for each in limits._refused] == [(NAMES.dispatch, b"r-1", DISPATCH * 2)]


def test_a_dispatch_that_is_known_not_to_fit_aborts_the_step_before_it_is_begun(make: Make) -> None:
    limits = limits_of(dispatch=100_000)
    writer, producer = make(limits)
    big = DISPATCH.replace(b'"payload":1', b'"payload":"' + b"x" * 100_000 + b'"')
    records = StepRecords((b"p", b"positions"), dispatches=[(b"1", big), (b"2", DISPATCH), (b"3", big)])
    with pytest.raises(StepAborted, match=r"larger than runs\.dispatch takes, 100000 bytes"):
        writer.write(records)
    assert producer.calls == []
    assert [each.key for each in limits._refused] == [b"1", b"3"]
    writer.write(StepRecords((b"p", b"positions"), dispatches=[(b"2", DISPATCH)]))
    assert producer.calls[-1] == "commit"


def test_where_a_topic_takes_less_than_a_batch_no_batch_is_larger(make: Make) -> None:
    writer, producer = make(limits_of(rejected=100_000))
    writer.write(StepRecords((b"p", b"positions"), rows=[(b"k", b"x" * 30_000)] * 8))
    between = "".join("." if call == "produce" else "|" for call in producer.calls if call in ("produce", "flush"))
    assert between == "...|...|...|"
    assert 3 * 30_000 < 100_000 - OVERHEAD_BYTES < 4 * 30_000
