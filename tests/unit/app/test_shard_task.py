from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from streams import clock
from streams.app.policy_reader import PolicyFeed
from streams.app.settings import Settings
from streams.app.shard_task import Listener, ShardParts, ShardTask
from streams.core.policy import Leases, Policy
from streams.core.snapshot import ShardSnapshot
from streams.errors import (
    BadRecord,
    ConfigError,
    FairstreamError,
    NotAuthorized,
    OwnershipLost,
    StepAborted,
    Unavailable,
)
from streams.wire import AppliedPolicy, JournalEntry, decode_journal
from tests.unit.app.fakes import FakeWriter, load_from, request, requests

DEADLINE_S = 10.0


def eventually(condition: Callable[[], object], what: str) -> None:
    clock.wait_until(condition, DEADLINE_S, 0.005, what=what)


@dataclass
class Views:
    """A status publisher that only remembers."""

    offered: list[ShardSnapshot] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)

    def forget(self, shard: int) -> None:
        self.forgotten.append(shard)

    def offer(self, snapshot: ShardSnapshot) -> None:
        self.offered.append(snapshot)


class Stage:
    """A shard task, and everything that is heard of it."""

    def __init__(self, writer: FakeWriter | None = None, load: Callable[[], Any] | None = None) -> None:
        self.writer = writer or FakeWriter()
        self.policies = PolicyFeed()
        self.views = Views()
        self.done: list[Any] = []
        self.ends: list[BaseException | None] = []
        self.loads = 0
        self._load = load or load_from(self.writer)
        settings = Settings(step_pause_ms=0, status_interval_ms=1, inbox_records=2_000)
        self.task = ShardTask(
            0,
            1,
            self._make,
            settings=settings,
            policies=self.policies,
            status=self.views,  # type: ignore[arg-type]
            listener=Listener(lambda _: None, self.done.extend, lambda _, failure: self.ends.append(failure)),
        )

    def _make(self) -> ShardParts:
        return ShardParts(self.writer, self._count_load)

    def _count_load(self) -> Any:
        self.loads += 1
        return self._load()

    @property
    def entries(self) -> list[JournalEntry]:
        return [decode_journal(step.journal[1]) for step in self.writer.written if step.journal]


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.task.give_up()
    if stage.task.ident is not None:
        stage.task.join(DEADLINE_S)
        assert not stage.task.is_alive()


def open_(stage: Stage) -> None:
    stage.task.start()
    assert stage.task.opened.result(DEADLINE_S) == {}
    eventually(lambda: len(stage.writer.written) == 1, "the step that begins the reign")


def test_it_fences_before_it_loads_and_then_says_where_it_stands(stage: Stage) -> None:
    open_(stage)
    assert (stage.writer.fences, stage.loads) == (1, 1)
    assert stage.ends == []


def test_a_reign_begins_with_a_step_though_nothing_has_arrived(stage: Stage) -> None:
    """Until then the core counts the time as an outage, which no worker is to blame for."""
    open_(stage)
    entry = stage.entries[0]
    assert (entry.step, entry.takeover, entry.inputs) == (1, True, ())


def test_events_are_done_once_their_step_is_written_and_in_order(stage: Stage) -> None:
    open_(stage)
    stage.writer.gate = threading.Event()
    assert stage.task.inbox.put(requests(request(0), event="first"))
    assert stage.writer.entered.wait(DEADLINE_S)
    assert stage.task.inbox.put(requests(request(1), event="second"))
    assert stage.done == []
    stage.writer.gate.set()
    eventually(lambda: stage.done == ["first", "second"], "both events")


def test_what_arrives_during_a_commit_forms_the_next_step(stage: Stage) -> None:
    open_(stage)
    stage.writer.gate = threading.Event()
    stage.task.inbox.put(requests(request(0)))
    assert stage.writer.entered.wait(DEADLINE_S)
    for offset in range(1, 6):
        stage.task.inbox.put(requests(request(offset), event=offset))
    stage.writer.gate.set()
    eventually(lambda: len(stage.done) == 5, "all events")
    assert [len(entry.decisions) for entry in stage.entries] == [0, 1, 5]


def test_an_aborted_step_is_repeated_from_the_rows(stage: Stage) -> None:
    open_(stage)
    stage.task.inbox.put(requests(request(0), event="first"))
    eventually(lambda: stage.done == ["first"], "the first step")
    stage.writer.failures.append(StepAborted("no"))
    stage.task.inbox.put(requests(request(1), event="second"))
    eventually(lambda: stage.done == ["first", "second"], "the second step")
    assert stage.loads == 2
    assert stage.writer.fences == 1  # the writer is still the owner
    assert [(entry.step, entry.epoch) for entry in stage.entries] == [(1, 1), (2, 1), (3, 2)]
    assert [key for step in stage.writer.written for key, _ in step.dispatches] == [b"run-0", b"run-1"]


def test_a_shard_that_is_loaded_again_is_not_in_memory_twice(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A million runs twice may be more than the machine has, and the former ones were never freed."""
    caplog.set_level("ERROR", "streams.app.shard")  # or the line's record holds the error, and that the shard
    load = stage._load
    steppers: list[weakref.ref[Any]] = []

    def watched() -> Any:
        gc.collect()
        assert all(former() is None for former in steppers), "a former one is held"
        made = load()
        steppers.append(weakref.ref(made))
        return made

    stage._load = watched
    open_(stage)
    stage.writer.failures.append(StepAborted("no"))
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.done or stage.ends, "the step")
    assert (stage.loads, stage.ends) == (2, [])
    stage.task.close()
    stage.task.join(DEADLINE_S)
    gc.collect()
    assert [former() for former in steppers] == [None, None]


def test_a_shard_that_is_closed_before_its_fence_fences_nobody(stage: Stage) -> None:
    """The fence would be one against whoever has the shard next."""
    stage.task.close()
    stage.task.start()
    stage.task.join(DEADLINE_S)
    assert stage.writer.fences == 0
    with pytest.raises(OwnershipLost):
        stage.task.opened.result(DEADLINE_S)


def test_what_it_does_can_be_asked() -> None:
    asked: list[str] = []

    def load() -> Any:
        asked.append(loading.task.doing)
        return load_from(loading.writer)()

    loading = Stage(load=load)
    loading.task.start()
    loading.task.opened.result(DEADLINE_S)
    loading.task.close()
    loading.task.join(DEADLINE_S)
    assert asked == ["is being loaded"]


def test_a_step_that_is_aborted_again_and_again_ends_the_task(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.app.shard_task._RETRY_S", 0.001)
    open_(stage)
    stage.writer.failures += [StepAborted("no")] * 5
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.ends, "its end")
    assert isinstance(stage.ends[0], FairstreamError)
    assert "aborted 5 times" in str(stage.ends[0])
    assert stage.done == []


@pytest.mark.parametrize("cause", [ConfigError("no such topic"), Unavailable("no answer"), BadRecord("too large")])
def test_it_ends_by_what_aborted_it_if_somebody_can_mend_that(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, cause: FairstreamError
) -> None:
    monkeypatch.setattr("streams.app.shard_task._RETRY_S", 0.001)
    aborted = StepAborted("no")
    aborted.__cause__ = cause
    open_(stage)
    stage.writer.failures += [aborted] * 5
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.ends, "its end")
    assert type(stage.ends[0]) is (FairstreamError if isinstance(cause, BadRecord) else type(cause))


def test_a_step_for_which_a_right_is_missing_is_not_tried_again(stage: Stage) -> None:
    aborted = StepAborted("no")
    aborted.__cause__ = NotAuthorized("not yours")
    open_(stage)
    stage.writer.failures.append(aborted)
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.ends, "its end")
    assert (stage.ends, stage.loads) == ([aborted.__cause__], 1)


def test_how_long_a_step_has_taken_can_be_asked(stage: Stage) -> None:
    open_(stage)
    eventually(lambda: stage.task.busy_s == 0, "the end of the first step")
    stage.writer.gate = threading.Event()
    stage.task.inbox.put(requests(request(0), event="event"))
    assert stage.writer.entered.wait(DEADLINE_S)
    eventually(lambda: stage.task.busy_s > 0.01, "some time in the step")
    stage.writer.gate.set()
    eventually(lambda: stage.task.busy_s == 0, "the end of the step")


def test_a_reload_is_no_part_of_the_step(stage: Stage) -> None:
    """It may take a minute, and a step that takes so long asks for a restart of the process."""
    busy: list[float] = []
    load = stage._load

    def watched() -> Any:
        busy.append(stage.task.busy_s)
        return load()

    stage._load = watched
    open_(stage)
    stage.writer.failures.append(StepAborted("no"))
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.done, "the step")
    assert busy == [0.0, 0.0]


def test_a_shard_is_fenced_once_its_fence_came_through(stage: Stage) -> None:
    assert not stage.task.fenced
    open_(stage)
    assert stage.task.fenced


@pytest.mark.parametrize("failure", [OwnershipLost("gone"), RuntimeError("a bug")])
def test_any_other_failure_is_its_end_and_somebody_hears_of_it(stage: Stage, failure: BaseException) -> None:
    open_(stage)
    stage.writer.failures.append(failure)
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.ends, "its end")
    assert stage.ends == [failure]
    assert stage.done == []
    with pytest.raises(OwnershipLost):
        stage.task.confirm(2).result(DEADLINE_S)


def test_a_shard_that_cannot_be_opened_says_why() -> None:
    failure = FairstreamError("unreadable")

    def load() -> Any:
        raise failure

    stage = Stage(load=load)
    stage.task.start()
    with pytest.raises(FairstreamError, match="unreadable"):
        stage.task.opened.result(DEADLINE_S)
    eventually(lambda: stage.ends == [failure], "its end")


def test_a_confirmation_drops_what_is_old_and_says_where_to_read_on(stage: Stage) -> None:
    open_(stage)
    stage.task.inbox.put(requests(request(0), event="event"))
    eventually(lambda: stage.done, "a step")
    assert stage.task.confirm(2).result(DEADLINE_S) == {"requests": 0}
    assert stage.writer.written[-1].journal is None
    assert not stage.task.inbox.put(requests(request(1), takeover=1))
    assert stage.task.inbox.put(requests(request(1), takeover=2, event="later"))
    eventually(lambda: stage.done == ["event", "later"], "the next step")
    assert stage.loads == 1


def test_a_shard_that_was_lost_cannot_be_confirmed(stage: Stage) -> None:
    open_(stage)
    stage.writer.failures.append(OwnershipLost("gone"))
    answer: Future[Any] = stage.task.confirm(2)
    with pytest.raises(OwnershipLost, match="gone"):
        answer.result(DEADLINE_S)
    eventually(lambda: len(stage.ends) == 1, "its end")


def test_nobody_who_asked_is_left_without_an_answer(stage: Stage) -> None:
    open_(stage)
    stage.writer.gate = threading.Event()
    stage.task.inbox.put(requests(request(0)))
    assert stage.writer.entered.wait(DEADLINE_S)
    answers = [stage.task.confirm(takeover) for takeover in (2, 3)]
    stage.writer.failures += [StepAborted(), OwnershipLost("gone")]
    stage.writer.gate.set()
    for answer in answers:
        with pytest.raises(OwnershipLost, match="gone"):
            answer.result(DEADLINE_S)


def test_closing_lets_the_step_under_way_end(stage: Stage) -> None:
    open_(stage)
    stage.writer.gate = threading.Event()
    stage.task.inbox.put(requests(request(0), event="event"))
    assert stage.writer.entered.wait(DEADLINE_S)
    stage.task.close()
    assert stage.ends == []
    stage.writer.gate.set()
    stage.task.join(DEADLINE_S)
    assert (stage.done, stage.ends) == (["event"], [None])
    assert stage.views.forgotten == [0]  # if it comes back, all of it is shown


def test_a_load_under_way_is_told_of_the_closing() -> None:
    """It may take half a minute, and a process that is told to stop has five seconds."""
    begun = threading.Event()

    def load() -> None:
        begun.set()
        eventually(lambda: loading.task.closing, "the closing")
        raise OwnershipLost("closed while it is loaded")

    loading = Stage(load=load)
    loading.task.start()
    assert begun.wait(DEADLINE_S)
    assert not loading.task.closing
    loading.task.close()
    loading.task.join(DEADLINE_S)
    assert [str(end) for end in loading.ends] == ["closed while it is loaded"]
    with pytest.raises(OwnershipLost):
        loading.task.opened.result(DEADLINE_S)


def test_a_policy_change_causes_a_step_and_is_its_input(stage: Stage) -> None:
    open_(stage)
    stage.policies.add(AppliedPolicy(3, "ann", 1_000, Policy(name="new")))
    stage.task.inbox.wake()
    eventually(lambda: len(stage.writer.written) == 2, "a step")
    assert stage.entries[1].policy_version == 3
    assert [(each.topic, each.first) for each in stage.entries[1].inputs] == [("policy", 3)]


def test_policies_are_taken_in_alone(stage: Stage) -> None:
    """With all that may arrive for a step they would have no room in its journal record."""
    stage.policies.add(AppliedPolicy(3, "ann", 1_000, Policy(name="new")))
    stage.task.inbox.put(requests(request(0)))
    stage.task.start()
    eventually(lambda: len(stage.writer.written) == 2, "both steps")
    assert [[each.topic for each in entry.inputs] for entry in stage.entries] == [["policy"], ["requests"]]
    assert [entry.takeover for entry in stage.entries] == [True, False]


def test_a_timer_causes_a_step(stage: Stage) -> None:
    open_(stage)
    leases = Leases(lease_ms=50, max_lease_ms=50, backoff_ms=0, max_attempts=2)
    stage.policies.add(AppliedPolicy(0, "ann", 1_000, Policy(leases=leases)))
    stage.task.inbox.put(requests(request(0)))
    eventually(lambda: sum(len(step.dispatches) for step in stage.writer.written) == 2, "a second attempt")


def test_a_view_is_shown_now_and_then(stage: Stage) -> None:
    open_(stage)
    stage.task.inbox.put(requests(request(0)))
    eventually(lambda: any(view.shard.flight_runs == 1 for view in stage.views.offered), "a view of the run")


def test_a_clock_that_goes_back_does_not_hold_up_what_is_due_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_(stage)
    monkeypatch.setattr("streams.core.dispatching.MAX_DISPATCHES", 1)
    hour_ago = clock.now_ms() - 3_600_000
    monkeypatch.setattr(clock, "now_ms", lambda: hour_ago)
    assert stage.task.inbox.put(requests(request(0), request(1), request(2)))
    eventually(lambda: sum(len(entry.decisions) for entry in stage.entries) == 3, "three dispatches")
