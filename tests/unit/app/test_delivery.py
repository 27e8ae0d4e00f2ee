"""Fetching, delivering and seeking under one lock: the traps in which records were lost, doubled, or stood still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalStateError, NoOffsetForPartitionError, OffsetOutOfRangeError
from faust.tables.recovery import RebalanceAgain, ServiceStopped
from faust.types import TP

from streams.app.assembly import _agent
from streams.app.faust_overrides.consumer import BatchScheduler, Consumer
from streams.app.faust_overrides.recovery import HandoverRecovery
from streams.intake import unread
from tests.unit.app.fakes import FakeRecord

HERE, THERE = TP("runs.requests", 0), TP("runs.requests", 1)


class Record(FakeRecord):
    topic = "runs.requests"
    partition = 0
    timestamp_type = 0


class FakeConsumer:
    """What delivery needs of a consumer. `fetched` is what the next fetches bring, `on_fetch` happens meanwhile."""

    _may_deliver = Consumer._may_deliver
    _deliver = Consumer._deliver
    _fetch = Consumer._fetch
    _sound = Consumer._sound

    def __init__(self, *fetched: dict[TP, list[Record]]) -> None:
        scheduler: Any = BatchScheduler
        self.scheduler = scheduler()
        self.misplaced: list[tuple[TP, int]] = []
        self.damaged: list[tuple[TP, str]] = []
        handover = SimpleNamespace(
            misplaced=lambda tp, offset: self.misplaced.append((tp, offset)),
            damaged=lambda tp, why: self.damaged.append((tp, why)),
        )
        self.app = SimpleNamespace(consumer_generation_id=1, handover=handover)
        self.takeover = 1
        self.flow_active = True
        self.suspend_flow = asyncio.Event()
        self.delivered: list[int] = []
        self.takeovers: list[int] = []
        self.asked: list[set[TP]] = []
        self.active = {HERE}
        self.on_fetch: Callable[[], None] = lambda: None
        self.on_delivery: Callable[[], None] = lambda: None
        self.blocked = False
        self._fetched = list(fetched)
        self._buffered_partitions: set[TP] = set()
        self._read_offset: dict[TP, int | None] = {HERE: None, THERE: None}

    def _get_active_partitions(self) -> set[TP]:
        return self.active

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Record]]:
        assert timeout < 1
        self.asked.append(active_partitions)
        self.on_fetch()
        return self._fetched.pop(0) if self._fetched else {}

    def _to_message(self, _tp: TP, batch: Any) -> Any:
        return batch

    async def callback(self, message: Any) -> None:
        if self.blocked:
            await asyncio.Event().wait()
        self.delivered.append(message.offset)
        self.takeovers.append(message.value.takeover)
        self.on_delivery()

    async def wait_first(self, *waits: Any) -> None:
        futures = [asyncio.ensure_future(each) for each in waits]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        for future in futures:
            future.cancel()

    def suspend(self) -> None:
        self.flow_active = False
        self.suspend_flow.set()


def batch(*offsets: int) -> list[Record]:
    return [Record(offset, b"x") for offset in offsets]


def deliver(consumer: FakeConsumer) -> bool:
    fetch: Any = Consumer._fetch_and_deliver
    return bool(asyncio.run(asyncio.wait_for(fetch(consumer), 5)))


def test_a_fetch_is_delivered_and_the_place_kept() -> None:
    consumer = FakeConsumer({HERE: batch(3, 4, 7)})
    assert deliver(consumer)
    assert consumer.delivered == [7]
    assert consumer._read_offset[HERE] == 7


def test_a_batch_says_since_which_takeover_it_was_fetched() -> None:
    """Of two in the same generation of the group, the second sets the inputs back as any other does."""
    consumer = FakeConsumer({HERE: batch(3)}, {HERE: batch(4)})
    deliver(consumer)
    consumer.takeover = 2
    deliver(consumer)
    assert consumer.takeovers == [1, 2]


def test_a_position_out_of_range_is_told_and_not_moved() -> None:
    consumer = FakeConsumer()

    def fail() -> None:
        raise OffsetOutOfRangeError({HERE: 7})

    consumer.on_fetch = fail
    assert not deliver(consumer)
    assert consumer.misplaced == [(HERE, 7)]


@pytest.mark.parametrize("error", [OffsetOutOfRangeError({HERE: 7}), NoOffsetForPartitionError(HERE)])
def test_before_the_first_seek_a_position_means_nothing(error: Exception) -> None:
    consumer = FakeConsumer()

    def rebalance() -> None:
        consumer.app.consumer_generation_id = 2
        raise error

    consumer.on_fetch = rebalance
    assert not deliver(consumer)
    assert consumer.misplaced == []


def test_damage_is_told_and_holds_up_no_other_input() -> None:
    mark = Record(1 << 62, None, headers=unread.mark(unread.DAMAGED, "a batch whose checksum is wrong"))
    consumer = FakeConsumer({HERE: [mark], THERE: batch(3)})
    consumer.active = {HERE, THERE}
    assert deliver(consumer)
    assert consumer.damaged == [(HERE, "a batch whose checksum is wrong")]
    assert consumer.delivered == [3]
    assert consumer._read_offset == {HERE: None, THERE: 3}


def test_with_nothing_active_nothing_is_fetched() -> None:
    """aiokafka would take an empty set for all partitions."""
    consumer = FakeConsumer({HERE: batch(0)})
    consumer.active = set()
    assert not deliver(consumer)
    assert consumer.asked == []


def test_what_lies_before_a_seek_is_not_delivered() -> None:
    consumer = FakeConsumer({HERE: batch(3, 4)})
    consumer._read_offset[HERE] = 9
    deliver(consumer)
    assert consumer.delivered == []


def test_a_partition_that_is_not_active_is_left_alone() -> None:
    consumer = FakeConsumer({THERE: batch(0), HERE: batch(1)})
    deliver(consumer)
    assert consumer.delivered == [1]


def test_a_partition_whose_buffer_is_full_still_gets_what_was_fetched() -> None:
    consumer = FakeConsumer({THERE: batch(0)})
    consumer._buffered_partitions = {THERE}
    deliver(consumer)
    assert consumer.delivered == [0]


def test_a_rebalance_during_the_fetch_breaks_the_batch_off() -> None:
    consumer = FakeConsumer({HERE: batch(0)})

    def rebalance() -> None:
        consumer.app.consumer_generation_id = 2

    consumer.on_fetch = rebalance
    deliver(consumer)
    assert consumer.delivered == []


@pytest.mark.parametrize("moment", ["on_fetch", "on_delivery"])
def test_a_suspended_flow_breaks_the_batch_off(moment: str) -> None:
    consumer = FakeConsumer({HERE: batch(0), THERE: batch(1)})
    consumer.active = {HERE, THERE}
    setattr(consumer, moment, consumer.suspend)
    deliver(consumer)
    assert consumer.delivered == ([] if moment == "on_fetch" else [0])
    assert consumer._read_offset == {HERE: None, THERE: None}  # it will be read again


def test_a_put_into_a_suspended_stream_is_not_waited_for() -> None:
    """It never returns, and whoever holds the lock with it stands still for ever."""
    consumer = FakeConsumer({HERE: batch(0)})
    consumer.blocked = True

    async def scenario() -> None:
        fetch: Any = Consumer._fetch_and_deliver
        running = asyncio.ensure_future(fetch(consumer))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, consumer.suspend)
        await running

    asyncio.run(asyncio.wait_for(scenario(), 5))
    assert consumer.delivered == []


def test_an_error_of_a_delivery_is_not_lost() -> None:
    consumer = FakeConsumer({HERE: batch(0)})

    def fail() -> None:
        raise RuntimeError("a bug")

    consumer.on_delivery = fail
    with pytest.raises(RuntimeError, match="a bug"):
        deliver(consumer)


class Stage:
    """A recovery with everything around it faked; `events` is what happened in which order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.stopped = False
        self.on_seek: Callable[[], None] = lambda: None
        self.lock = asyncio.Lock()
        note = self._note
        self.consumer = SimpleNamespace(
            delivery_lock=self.lock,
            _committed_offset={},
            stop_flow=note("stop"),
            resume_flow=note("flow"),
            resume_partitions=lambda tps: self.events.append(f"resume {sorted(tps)}"),
            seek_wait=self._seek,
        )
        self.app = SimpleNamespace(
            consumer=self.consumer,
            consumer_generation_id=1,
            on_rebalance_complete=SimpleNamespace(send=self._async("complete")),
            conf=SimpleNamespace(broker_request_timeout=5),
            flow_control=SimpleNamespace(resume=note("streams")),
            _fetcher=SimpleNamespace(maybe_start=self._async("fetcher")),
            on_rebalance_end=note("end"),
        )
        recovery: Any = HandoverRecovery.__new__(HandoverRecovery)
        self.recovery = recovery
        recovery.app = self.app
        recovery._takeovers = 3
        recovery.tables = SimpleNamespace(on_actives_ready=note("actives"), on_standbys_ready=note("standbys"))
        recovery._signal_recovery_start = asyncio.Event()
        recovery.completed = asyncio.Event()
        recovery._stopped = SimpleNamespace(is_set=lambda: self.stopped)
        recovery._crashed = SimpleNamespace(is_set=lambda: False)
        recovery._set_recovery_ended = note("ended")
        recovery._wait = self._wait

    def _note(self, event: str) -> Callable[[], None]:
        return lambda: self.events.append(event)

    def _async(self, event: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def happen() -> None:
            self.events.append(event)

        return happen

    async def _seek(self, positions: dict[TP, int]) -> None:
        self.events.append(f"seek {list(positions.values())} locked={self.lock.locked()}")
        self.on_seek()

    async def _wait(self, coroutine: Coroutine[Any, Any, None], timeout: float) -> None:
        await asyncio.wait_for(coroutine, timeout)

    def resume(self, generation: int = 1) -> None:
        async def scenario() -> None:
            await self.recovery._resume({HERE: 7}, generation)

        asyncio.run(scenario())


def test_the_inputs_are_set_back_while_nothing_can_be_delivered_and_only_then_flow() -> None:
    stage = Stage()
    stage.resume()
    order = [event for event in stage.events if event.split()[0] in {"stop", "seek", "streams", "flow", "fetcher"}]
    assert order == ["stop", "seek [7] locked=True", "streams", "flow", "fetcher"]
    assert stage.consumer._committed_offset == {HERE: 7}
    assert stage.consumer.takeover == 3
    assert stage.recovery.completed.is_set()
    assert not stage.lock.locked()


def test_a_takeover_of_an_older_generation_lets_nothing_flow() -> None:
    stage = Stage()
    with pytest.raises(RebalanceAgain):
        stage.resume(generation=0)
    assert "flow" not in stage.events


def test_a_rebalance_during_the_seek_lets_nothing_flow() -> None:
    stage = Stage()

    def rebalance() -> None:
        stage.app.consumer_generation_id = 2

    stage.on_seek = rebalance
    with pytest.raises(RebalanceAgain):
        stage.resume()
    assert "flow" not in stage.events
    assert not stage.lock.locked()


def test_a_partition_that_was_taken_away_during_the_seek_is_no_failure() -> None:
    stage = Stage()

    def gone() -> None:
        raise IllegalStateError("not assigned")

    stage.on_seek = gone
    with pytest.raises(IllegalStateError):  # which `_restart_recovery` takes for another rebalance
        stage.resume()
    assert "flow" not in stage.events


def test_nothing_flows_once_the_process_is_ending() -> None:
    stage = Stage()
    stage.stopped = True
    with pytest.raises(ServiceStopped):
        stage.resume()
    assert stage.events == []


def test_an_agent_that_is_held_up_when_its_partition_is_revoked_ends_without_a_crash() -> None:
    """Faust cancels it. It takes an agent's `CancelledError` for a crash, and that ends the process."""

    class Held:
        """A fleet whose inboxes are full."""

        def __init__(self) -> None:
            self.waits = asyncio.Event()

        async def deliver(self, _event: object) -> None:
            self.waits.set()
            await asyncio.Event().wait()

    class Stream:
        def noack(self) -> Stream:
            return self

        async def events(self) -> AsyncIterator[object]:
            yield object()

    async def scenario() -> None:
        fleet = Held()
        agent = asyncio.ensure_future(_agent(fleet)(Stream()))  # type: ignore[arg-type]
        await fleet.waits.wait()
        agent.cancel()
        await agent

    asyncio.run(scenario())
