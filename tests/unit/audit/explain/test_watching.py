"""What is told of a run when several things happen to it in one step, or to others of its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.audit.explain.life import CANCELLED
from streams.audit.explain.story import tell
from streams.core import reasons
from streams.core.effects import Rejection
from streams.core.inputs import FAILED, RETURNED, STARTED, SUCCEEDED, Submit
from streams.core.policy import Leases, Limits
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.unit.audit.explain.watched import Watched

LEASES = Leases(lease_ms=1_000, min_lease_ms=1, max_lease_ms=9_000, max_attempts=3, backoff_ms=50, max_backoff_ms=50)


@pytest.mark.parametrize(
    ("status", "retryable", "end"),
    [(FAILED, True, CANCELLED), (RETURNED, False, CANCELLED), (FAILED, False, FAILED), (SUCCEEDED, False, SUCCEEDED)],
)
def test_a_cancel_that_comes_with_a_report_ends_only_what_goes_on(status: str, retryable: bool, end: str) -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.step(make_report(shard.attempt(1), status, retryable=retryable), make_cancel("a", "r"), after_ms=10)
    life = shard.life()
    assert (life.end, sum(life.divided.values())) == (end, 10)


def test_a_late_failure_of_a_lost_attempt_does_not_end_the_run() -> None:
    shard = Watched(make_policy(leases=LEASES, runs=1))
    shard.submit("a", "r")
    lost = shard.attempt(1)
    shard.step(after_ms=1_000)
    shard.step(after_ms=50)
    shard.step(make_report(lost, FAILED), make_cancel("a", "r"), after_ms=10)
    assert shard.life().end == CANCELLED


def test_reports_on_attempts_that_it_never_had_say_nothing() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.step(make_report(replace(shard.attempt(1), attempt=7), SUCCEEDED), after_ms=10)
    life = shard.life()
    assert life.end is None
    assert [attempt.reports for attempt in life.attempts] == [[]]


def test_others_that_end_in_the_same_step_are_others() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", "r2")
    shard.submit("b", "r")
    shard.step(make_cancel("a", "r2"), make_cancel("b", "r"), make_cancel("a", "r"), after_ms=10)
    assert shard.life().attempts[0].revoked == "cancelled by its tenant"
    shard.step(*(make_report(each, FAILED, tokens=5) for each in shard.dispatches), after_ms=10)
    assert shard.watched().done
    assert shard.life().attempts[0].actual == 5


def test_a_run_that_gave_way_may_come_again_and_both_are_told() -> None:
    limits = Limits(max_queued_runs=1, overload="drop_longest")
    shard = Watched(make_policy(runs=1, limits=limits))
    shard.submit("z", "z1")
    shard.submit("a", "r", cost=500)
    shard.submit("y", "y1", cost=10)  # has less waiting: a's run gives way
    shard.finish(shard.dispatches[0], after_ms=10)
    shard.submit("a", "r", cost=500)
    first, second = shard.answers()
    assert first.life is not None
    assert second.life is not None
    assert first.life.end == reasons.OVERLOADED
    assert second.life.end is None
    assert tell(shard.explained())[-1].startswith(
        "It was asked for 2 times; the other requests: offset 3 (another run,"
    )


def test_a_run_that_was_refused_before_the_core_saw_it() -> None:
    shard = Watched(make_policy())
    shard.submit("z", "z1")
    submit: Submit = make_submit("a", "r", position=shard.next_position(), submitted_ms=shard.now_ms)
    shard.ask(submit)
    refusal = Rejection("a", "r", reasons.TOO_LARGE, "too large", 5, 9, None, submit.position, b"")
    shard.step(after_ms=5, refused=[refusal])
    (answer,) = shard.answers()
    assert (answer.refusal, answer.life) == (refusal, None)
    assert answer.moment is not None
    assert answer.moment.at_ms == shard.now_ms


def test_requests_that_nobody_looks_for_are_passed_over() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("a", "r")
    shard.report(SUCCEEDED, after_ms=5)
    del shard.asked[0]
    shard.submit("a", "r")  # a duplicate: the only one that is asked about
    (answer,) = shard.answers()
    assert answer.refusal is not None
    assert answer.refusal.reason == reasons.DUPLICATE


def test_the_fates_of_other_requests() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    submit = make_submit("a", "r", position=shard.next_position(), submitted_ms=shard.now_ms)
    shard.ask(submit)
    shard.step(submit, make_cancel("a", "r"))
    shard.submit("a", "r")
    shard.ask(make_submit("a", "r", position=shard.next_position(), submitted_ms=shard.now_ms))
    explained = shard.explained()
    assert tell(replace(explained, chosen=explained.answers[1]))[-1] == (
        "It was asked for 3 times; the other requests: offset 3 (taken back at once) and offset 5 (not taken in yet)."
    )
    assert not shard.watched().done


def test_it_is_done_once_nothing_more_can_be_told() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    assert not shard.watched().done
    shard.report(STARTED, after_ms=5)
    assert not shard.watched().done
    shard.report(SUCCEEDED, after_ms=5)
    assert shard.watched().done
