from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest
from faust.types import TP

from streams import clock
from streams.app.inbox import Inbox
from streams.app.shard_task import Listener, Offsets, ShardTask
from streams.app.takeover import Fleet
from streams.errors import FairstreamError, OwnershipLost
from tests.unit.app.fakes import NAMES, FakeRecord

TOPICS = (NAMES.requests, NAMES.completions, NAMES.state)


class FakeTask:
    """A shard task without a thread: the test says when it opens, confirms and ends."""

    def __init__(self, shard: int, generation: int, listener: Listener) -> None:
        self.shard = shard
        self.listener = listener
        self.inbox = Inbox(2, 1 << 40, lambda: listener.on_room(shard))
        self.inbox.reset(generation)
        self.opened: Future[Offsets] = Future()
        self.pause_s = 0.0
        self.started = False
        self.closed = False
        self.gave_up = False
        self.stubborn = False  # does not end when told to
        self.confirmed: list[int] = []
        self.lost = False

    def start(self) -> None:
        self.started = True
        self.opened.set_result({"requests": 10 * self.shard + 9})

    def confirm(self, generation: int) -> Future[Offsets]:
        self.confirmed.append(generation)
        self.inbox.reset(generation)
        answer: Future[Offsets] = Future()
        if self.lost:
            answer.set_exception(OwnershipLost("gone"))
        else:
            answer.set_result({"requests": 10 * self.shard + 9, "completions": 4})
        return answer

    def close(self) -> None:
        self.closed = True

    def give_up(self) -> None:
        self.gave_up = True

    def join(self, timeout: float) -> None:
        pass

    def is_alive(self) -> bool:
        return self.stubborn and not self.gave_up

    def end(self, failure: BaseException | None) -> None:
        self.listener.on_end(self, failure)  # type: ignore[arg-type]


class Stage:
    """A fleet of fake tasks."""

    def __init__(self, task: type[FakeTask] = FakeTask) -> None:
        self.tasks: list[FakeTask] = []
        self.failures: list[BaseException] = []

        def make(shard: int, generation: int, listener: Listener) -> ShardTask:
            self.tasks.append(task(shard, generation, listener))
            return self.tasks[-1]  # type: ignore[return-value]

        self.fleet = Fleet(NAMES, make, pause_s=0.01, lost_grace_s=0.05, on_failure=self.failures.append)

    def live(self) -> dict[int, FakeTask]:
        return {task.shard: task for task in self.tasks if not task.closed}


def assignment(*shards: int) -> frozenset[TP]:
    return frozenset(TP(topic, shard) for topic in TOPICS for shard in shards)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


async def settle(condition: Callable[[], object]) -> None:
    end = clock.monotonic() + 5
    while not condition():
        assert clock.monotonic() < end, "it never came about"
        await asyncio.sleep(0.001)


def test_every_assigned_shard_is_opened_and_its_inputs_go_on_after_what_was_applied() -> None:
    async def scenario() -> None:
        stage = Stage()
        positions = await stage.fleet.take(assignment(0, 2), 7)
        assert positions == {
            TP(NAMES.requests, 0): 10,
            TP(NAMES.completions, 0): 0,
            TP(NAMES.requests, 2): 30,
            TP(NAMES.completions, 2): 0,
        }
        assert stage.fleet.shards == [0, 2]
        assert stage.fleet.ready

    run(scenario)


def test_an_empty_assignment_is_served_too() -> None:
    async def scenario() -> None:
        stage = Stage()
        assert await stage.fleet.take(frozenset(), 1) == {}
        assert stage.fleet.ready

    run(scenario)


def test_a_shard_that_stays_is_confirmed_and_one_that_goes_is_closed() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        zero, one = stage.tasks
        positions = await stage.fleet.take(assignment(1, 2), 2)
        assert zero.closed
        assert not one.closed
        assert one.confirmed == [2]
        assert len(stage.tasks) == 3
        assert positions[TP(NAMES.completions, 1)] == 5
        assert stage.fleet.shards == [1, 2]

    run(scenario)


def test_a_shard_that_was_lost_meanwhile_is_opened_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].lost = True
        positions = await stage.fleet.take(assignment(0), 2)
        assert len(stage.tasks) == 2
        assert positions[TP(NAMES.requests, 0)] == 10
        stage.tasks[0].end(OwnershipLost("gone"))  # its end is expected, whenever it is heard of
        await asyncio.sleep(0.1)
        assert stage.failures == []

    run(scenario)


class Unreadable(FakeTask):
    def start(self) -> None:
        self.opened.set_exception(FairstreamError("unreadable"))
        self.end(FairstreamError("unreadable"))


def test_a_shard_that_cannot_be_opened_ends_the_process_with_its_own_words() -> None:
    async def scenario() -> None:
        stage = Stage(Unreadable)
        assert await stage.fleet.take(assignment(0), 1) == {}
        await settle(lambda: stage.failures)
        assert str(stage.failures[0]) == "unreadable"

    run(scenario)


class Fenced(FakeTask):
    def start(self) -> None:
        self.opened.set_exception(OwnershipLost("somebody was quicker"))
        self.end(OwnershipLost("somebody was quicker"))


def test_a_shard_that_somebody_else_took_while_it_was_opened_is_left_out() -> None:
    async def scenario() -> None:
        stage = Stage(Fenced)
        assert await stage.fleet.take(assignment(0), 1) == {}
        await settle(lambda: stage.fleet.shards == [])
        # The group knows of it and is about to say so; if it does not, nobody serves the shard.
        await settle(lambda: stage.failures)
        assert isinstance(stage.failures[0], OwnershipLost)

    run(scenario)


def test_a_lost_shard_is_forgiven_once_the_group_has_decided_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.fleet.shards == [1])
        await stage.fleet.take(assignment(1), 2)
        await asyncio.sleep(0.1)
        assert stage.failures == []

    run(scenario)


@pytest.mark.parametrize("failure", [FairstreamError("unreadable"), RuntimeError("a bug"), None])
def test_any_other_end_of_a_shard_is_the_end_of_the_process(failure: BaseException | None) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].end(failure)
        await settle(lambda: stage.failures)
        assert failure is None or stage.failures == [failure]

    run(scenario)


def test_topics_assigned_apart_are_refused() -> None:
    async def scenario() -> None:
        stage = Stage()
        apart = assignment(0, 1) - {TP(NAMES.completions, 1)}
        with pytest.raises(FairstreamError, match="belong together"):
            await stage.fleet.take(apart, 1)
        assert stage.tasks == []

    run(scenario)


class Message:
    def __init__(self, topic: str, partition: int, generation: int, records: list[FakeRecord]) -> None:
        self.topic = topic
        self.partition = partition
        self.generation_id = generation
        self.value = records


class Record(FakeRecord):
    serialized_value_size = 1


class Event:
    def __init__(self, message: Message, acked: list[Event] | None = None) -> None:
        self.message = message
        self._acked = acked if acked is not None else []

    def ack(self) -> None:
        self._acked.append(self)


def batch(offset: int, number: int = 1, generation: int = 1, shard: int = 0) -> Event:
    return Event(Message(NAMES.requests, shard, generation, [Record(offset + n, b"x") for n in range(number)]))


def test_a_full_inbox_holds_its_own_shard_up_and_nobody_else() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        held = asyncio.ensure_future(stage.fleet.deliver(batch(0, 3)))
        await asyncio.sleep(0.02)
        assert not held.done()
        await stage.fleet.deliver(batch(0, shard=1))
        assert len(stage.tasks[0].inbox.take(9, 99)) == 1
        await held

    run(scenario)


def test_nobody_waits_for_a_shard_that_is_gone() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        held = asyncio.ensure_future(stage.fleet.deliver(batch(0, 3)))
        await asyncio.sleep(0.02)
        await stage.fleet.take(frozenset(), 2)
        await held
        await stage.fleet.deliver(batch(3))  # dropped: its next owner reads it

    run(scenario)


def test_a_batch_of_the_last_generation_never_follows_a_takeover() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        await stage.fleet.take(assignment(0), 2)
        await stage.fleet.deliver(batch(0, generation=1))
        await stage.fleet.deliver(batch(5, generation=2))
        (taken,) = stage.tasks[0].inbox.take(9, 99)
        assert [record.offset for record in taken.records] == [5]

    run(scenario)


def test_events_are_acknowledged_in_order() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        acked: list[Event] = []
        events = [Event(Message(NAMES.requests, 0, 1, []), acked) for _ in range(3)]
        stage.tasks[0].listener.on_done(events)
        await settle(lambda: acked == events)

    run(scenario)


def test_releasing_closes_all_and_abandons_what_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[1].stubborn = True
        await stage.fleet.release()
        assert all(task.closed for task in stage.tasks)
        assert [task.gave_up for task in stage.tasks] == [False, True]
        assert not stage.fleet.ready
        stage.tasks[1].end(RuntimeError("torn out of a commit"))
        await asyncio.sleep(0.02)
        assert stage.failures == []  # nobody expected anything else

    monkeypatch.setattr("streams.app.takeover._STEP_GRACE_S", 0.01)
    run(scenario)


def test_many_shards_in_one_process_pause_longer() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(*range(4)), 1)
        assert {task.pause_s for task in stage.tasks} == {0.01}
        await stage.fleet.take(assignment(*range(16)), 2)
        assert {task.pause_s for task in stage.tasks} == {0.04}

    run(scenario)


def test_a_wake_reaches_every_shard() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.fleet.wake()
        for task in stage.tasks:
            task.inbox.wait(60)

    run(scenario)
