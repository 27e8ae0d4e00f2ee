from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

import pytest
from faust.types import TP

from streams import clock
from streams.app.faust_overrides import Fetched
from streams.app.inbox import Inbox
from streams.app.shard_task import Listener, Offsets, ShardTask
from streams.app.takeover import Fleet
from streams.app.unserved import Unserved
from streams.errors import (
    ConfigError,
    DeploymentMoved,
    FairstreamError,
    NotAuthorized,
    OwnershipLost,
    StateUnreadable,
    Unavailable,
)
from tests.unit.app.fakes import NAMES, FakeRecord

TOPICS = (NAMES.requests, NAMES.completions, NAMES.state)


class FakeTask:
    """A shard task without a thread: the test says when it opens, confirms and ends."""

    def __init__(self, shard: int, takeover: int, listener: Listener) -> None:
        self.shard = shard
        self.listener = listener
        self.inbox = Inbox(2, 1 << 40, lambda: listener.on_room(shard))
        self.inbox.reset(takeover)
        self.opened: Future[Offsets] = Future()
        self.pause_s = 0.0
        self.started = False
        self.closed = False
        self.gave_up = False
        self.stubborn = False  # does not end when told to
        self.confirmed: list[int] = []
        self.lost = False
        self.fenced = False
        self.busy_s = 0.0
        self.doing = "is being loaded"

    def start(self) -> None:
        self.started = True
        self.fenced = True
        self.opened.set_result({"requests": 10 * self.shard + 9})

    def confirm(self, takeover: int) -> Future[Offsets]:
        self.confirmed.append(takeover)
        self.inbox.reset(takeover)
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
    """A fleet of fake tasks in a fake group, which gives the same assignment again when it is asked."""

    def __init__(self, task: type[FakeTask] = FakeTask) -> None:
        self.tasks: list[FakeTask] = []
        self.failures: list[BaseException] = []
        self.paused: set[TP] = set()
        self.asked = 0
        self.checked: list[int] = []
        self.unreadable: Exception | None = None  # what a check of a refused shard finds
        self.kind = task

        def make(shard: int, takeover: int, listener: Listener) -> ShardTask:
            self.tasks.append(self.kind(shard, takeover, listener))
            return self.tasks[-1]  # type: ignore[return-value]

        unserved = Unserved(lost_grace_s=0.05, refused_retry_s=0.01)
        self.fleet = Fleet(NAMES, make, self.check, pause_s=0.01, unserved=unserved, on_failure=self.failures.append)
        self.fleet.attach(self)

    def rejoin(self) -> None:
        self.asked += 1

    def pause(self, partitions: Iterable[TP]) -> None:
        self.paused.update(partitions)

    def check(self, shard: int) -> None:
        self.checked.append(shard)
        if self.unreadable is not None:
            raise self.unreadable

    async def serve(self, *shards: int, rejoins: int) -> None:
        """Do as the group does: hand out the assignment, and again each time that it is asked."""
        for number in range(1, rejoins + 2):
            await self.fleet.take(assignment(*shards), number)
            if number <= rejoins:
                await settle(lambda: self.asked == number)  # noqa: B023

    def live(self) -> dict[int, FakeTask]:
        return {task.shard: task for task in self.tasks if not task.closed}


def assignment(*shards: int) -> frozenset[TP]:
    return frozenset(TP(topic, shard) for topic in TOPICS for shard in shards)


def is_ready(stage: Stage) -> bool:
    return stage.fleet.ready  # a call: mypy takes what an attribute was found to be for what it will be


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


class Slow(FakeTask):
    """Opens when it is told to."""

    def start(self) -> None:
        self.fenced = True

    def open(self) -> None:
        self.opened.set_result({})


def test_a_shard_that_was_lost_meanwhile_is_not_asked_for_while_it_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].lost = True
        stage.kind = Slow
        taking = asyncio.ensure_future(stage.fleet.take(assignment(0), 2))
        await asyncio.sleep(0)
        stage.tasks[0].end(OwnershipLost("gone"))  # heard before the takeover hears that it cannot be confirmed
        await settle(lambda: len(stage.tasks) == 2)
        await asyncio.sleep(0.05)
        assert stage.asked == 0
        stage.tasks[1].opened.set_result({})
        await taking
        assert is_ready(stage)
        # And if the new one fails, it is asked for.
        stage.tasks[1].end(OwnershipLost("gone again"))
        await settle(lambda: stage.asked)

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.001)
    run(scenario)


def test_a_takeover_frees_what_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is out of all collections: see `collector`."""
    closed: list[list[bool]] = []

    async def scenario() -> None:
        stage = Stage()
        monkeypatch.setattr("streams.app.collector.sweep", lambda: closed.append([task.closed for task in stage.tasks]))
        await stage.fleet.take(assignment(0, 1), 1)
        await stage.fleet.take(assignment(1), 2)

    run(scenario)
    assert closed == [[False, False], [True, False]]


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


class Failing(FakeTask):
    """Cannot be opened."""

    failure: FairstreamError = StateUnreadable("a row is not a row")
    past_fence = True

    def start(self) -> None:
        self.fenced = self.past_fence
        self.opened.set_exception(self.failure)
        self.end(self.failure)


class Fenced(Failing):
    failure = OwnershipLost("somebody was quicker")
    past_fence = False


class Alone(Failing):
    failure = Unavailable("no answer")
    past_fence = False


class Forbidden(Failing):
    failure = ConfigError("not authorized")
    past_fence = False


class Torn(Failing):
    failure = ConfigError("made with 3 partitions")


@pytest.mark.parametrize("kind", [Failing, Torn])
def test_a_shard_that_cannot_be_read_is_refused_and_named_and_the_others_are_served(
    kind: type[FakeTask], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.kind = kind
        stage.unreadable = kind.failure  # type: ignore[attr-defined]
        positions = await stage.fleet.take(assignment(0, 1), 2)
        assert {tp.partition for tp in positions} == {0}
        await settle(lambda: len(stage.checked) > 3)
        assert stage.fleet.shards == [0]
        assert not is_ready(stage)
        assert list(stage.fleet.unserved) == [1]
        assert str(stage.unreadable) in stage.fleet.unserved[1]
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        await stage.fleet.deliver(batch(0, shard=1))  # what was fetched before the pause is dropped
        assert (stage.asked, stage.failures) == (0, [])  # the group is not disturbed for what is as it was

    run(scenario)
    assert [record.levelname for record in caplog.records if "shard_refused" in record.message] == ["ERROR"]


def test_a_shard_that_has_been_repaired_is_taken_without_a_restart() -> None:
    async def scenario() -> None:
        stage = Stage(Failing)
        stage.unreadable = StateUnreadable("a row is not a row")
        await stage.fleet.take(assignment(0), 1)
        await settle(lambda: stage.checked)
        stage.unreadable = None
        await settle(lambda: stage.asked)
        assert not is_ready(stage)
        stage.kind = FakeTask
        await stage.fleet.take(assignment(0), 2)
        assert stage.fleet.ready
        assert stage.fleet.unserved == {}

    run(scenario)


@pytest.mark.parametrize("found", [DeploymentMoved("elsewhere"), NotAuthorized("not yours"), RuntimeError("a bug")])
def test_a_look_at_a_refused_shard_that_finds_what_no_other_look_mends_ends_the_process(found: Exception) -> None:
    """A look that ended by an error of its own was the last: the shard was never tried again."""

    async def scenario() -> None:
        stage = Stage(Failing)
        stage.unreadable = found
        await stage.fleet.take(assignment(0), 1)
        await settle(lambda: stage.failures)
        assert stage.failures == [found]

    run(scenario)


def test_a_fence_that_is_not_allowed_ends_the_process_with_its_own_words() -> None:
    async def scenario() -> None:
        stage = Stage(Forbidden)
        assert await stage.fleet.take(assignment(0), 1) == {}
        await settle(lambda: stage.failures)
        assert str(stage.failures[0]) == "not authorized"

    run(scenario)


def test_a_shard_is_waited_for_as_long_as_kafka_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage(Alone)
        await stage.serve(0, rejoins=4)
        await settle(lambda: stage.fleet.unserved)
        assert stage.failures == []
        stage.kind = FakeTask
        await stage.fleet.take(assignment(0), 6)
        assert stage.fleet.ready

    monkeypatch.setattr("streams.app.unserved._FIRST_WAIT_S", 0.001)
    run(scenario)
    assert (
        sum("shard_waiting" in record.message for record in caplog.records) == 1
    )  # a line for the outage, not the try


def test_a_shard_that_is_lost_while_the_group_gives_it_to_us_is_taken_again() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.asked)
        assert stage.fleet.shards == [1]
        assert not is_ready(stage)
        assert [task.shard for task in stage.tasks] == [0, 1]  # not before the group has answered
        await stage.fleet.take(assignment(0, 1), 2)
        assert stage.fleet.ready
        assert [task.shard for task in stage.tasks] == [0, 1, 0]
        assert stage.failures == []

    run(scenario)


def test_a_shard_that_is_lost_over_and_over_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(Fenced)
        serving = asyncio.ensure_future(stage.serve(0, rejoins=99))
        await settle(lambda: stage.failures)
        serving.cancel()
        assert isinstance(stage.failures[0], OwnershipLost)
        assert "same transactional id" in str(stage.failures[0])
        assert len(stage.tasks) > 2

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.005)
    run(scenario)


def test_a_lost_shard_is_forgiven_once_the_group_has_decided_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.fleet.shards == [1])
        await stage.fleet.take(assignment(1), 2)
        assert stage.fleet.ready
        await asyncio.sleep(0.1)
        assert (stage.asked, stage.failures) == (0, [])

    run(scenario)


def test_a_group_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.asked > 2)
        await stage.fleet.release()
        asked = stage.asked
        await asyncio.sleep(0.02)
        assert stage.asked == asked

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.001)
    monkeypatch.setattr("streams.app.retaking._ASK_AGAIN_S", 0.001)
    run(scenario)


def test_a_shard_whose_input_is_not_where_it_was_is_loaded_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.fleet.misplaced(TP(NAMES.requests, 1), 10)
        assert stage.tasks[1].closed
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        assert (stage.asked, stage.fleet.ready, stage.fleet.shards) == (1, False, [0])
        stage.tasks[1].end(None)
        await stage.fleet.take(assignment(0, 1), 2)
        assert [task.shard for task in stage.tasks] == [0, 1, 1]
        assert stage.tasks[0].confirmed == [2]
        assert stage.fleet.ready

    run(scenario)


def test_a_shard_whose_input_is_damaged_is_refused_by_name_and_tried_again_later() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        for _ in range(2):
            stage.fleet.damaged(TP(NAMES.requests, 1), "a batch whose checksum is wrong")
        assert stage.tasks[1].closed
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        assert stage.fleet.shards == [0]
        why = stage.fleet.unserved[1]
        assert why.startswith("refused: runs.requests, partition 1")
        assert why.endswith("a batch whose checksum is wrong")
        assert stage.asked == 0

    run(scenario)


@pytest.mark.parametrize("failure", [FairstreamError("unknown"), RuntimeError("a bug"), None])
def test_any_other_end_of_a_shard_is_the_end_of_the_process(failure: BaseException | None) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].end(failure)
        await settle(lambda: stage.failures)
        assert failure is None or stage.failures == [failure]

    run(scenario)


def test_a_shard_of_which_not_all_topics_were_assigned_is_refused() -> None:
    async def scenario() -> None:
        stage = Stage()
        apart = assignment(0, 1) - {TP(NAMES.completions, 1)}
        positions = await stage.fleet.take(apart, 1)
        assert {tp.partition for tp in positions} == {0}
        assert "runs.completions: there is no partition 1" in stage.fleet.unserved[1]
        assert not is_ready(stage)

    run(scenario)


def test_a_shard_that_is_doubted_while_it_is_opened_is_not_served() -> None:
    async def scenario() -> None:
        stage = Stage(Slow)
        taking = asyncio.ensure_future(stage.fleet.take(assignment(0), 1))
        await settle(lambda: stage.tasks)
        stage.fleet.topics_changed()
        await settle(lambda: stage.asked)
        (slow,) = stage.tasks
        assert isinstance(slow, Slow)
        slow.open()
        assert await taking == {}
        assert (stage.fleet.shards, is_ready(stage)) == ([], False)
        stage.kind = FakeTask
        await stage.fleet.take(frozenset(), 2)  # it may go to somebody else just as well
        assert is_ready(stage)

    run(scenario)


def test_topics_may_change_before_there_is_a_takeover() -> None:
    stage = Stage()
    stage.fleet.topics_changed()
    assert stage.asked == 0


class Message:
    def __init__(self, topic: str, partition: int, takeover: int, records: list[FakeRecord]) -> None:
        self.topic = topic
        self.partition = partition
        self.value = Fetched(records, takeover)


class Event:
    def __init__(self, message: Message, acked: list[Event] | None = None) -> None:
        self.message = message
        self._acked = acked if acked is not None else []

    def ack(self) -> None:
        self._acked.append(self)


def batch(offset: int, number: int = 1, takeover: int = 1, shard: int = 0) -> Event:
    return Event(Message(NAMES.requests, shard, takeover, [FakeRecord(offset + n, b"x") for n in range(number)]))


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


def test_a_batch_of_the_last_takeover_never_follows_a_takeover() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        await stage.fleet.take(assignment(0), 2)
        await stage.fleet.deliver(batch(0, takeover=1))
        await stage.fleet.deliver(batch(5, takeover=2))
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


def test_releasing_closes_all_and_abandons_what_does_not_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[1].stubborn = True
        await stage.fleet.release()
        assert all(task.closed for task in stage.tasks)
        assert [task.gave_up for task in stage.tasks] == [False, True]
        assert not is_ready(stage)
        stage.tasks[1].end(RuntimeError("torn out of a commit"))
        await asyncio.sleep(0.02)
        assert stage.failures == []  # nobody expected anything else

    monkeypatch.setattr("streams.app.takeover._STEP_GRACE_S", 0.01)
    run(scenario)
    assert "shard_abandoned shard=1: it is being loaded" in caplog.text


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
