"""What each part of a run's time is: one story for each, in which every millisecond is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.audit.explain import parts
from streams.audit.explain.life import CANCELLED, Life
from streams.core import dispatching, run_view, waiting
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED, Takeover
from streams.core.policy import Leases, PriorityClass, TenantRules
from tests.builders import make_cancel, make_policy, make_report
from tests.unit.audit.explain.watched import Watched

LEASES = Leases(lease_ms=1_000, min_lease_ms=1, max_lease_ms=9_000, max_attempts=3, backoff_ms=50, max_backoff_ms=50)


def divided(life: Life) -> dict[str, int]:
    """Return the parts, which add up."""
    end_ms = life.ended.at_ms if life.ended is not None else life.seen_ms
    assert sum(life.divided.values()) == end_ms - life.arrived_ms
    return life.divided


def told(shard: Watched) -> dict[str, int]:
    return divided(shard.life())


def test_every_part_has_words_and_is_told_once() -> None:
    assert set(parts.ENDS) == {*parts.WAITS, ""} - {run_view.OVERDUE, parts.HANDOVER, parts.UNHEARD}
    assert set(parts.WORDS) == set(parts.PARTS)
    assert len(parts.PARTS) == len(set(parts.PARTS))
    assert {*waiting.SKIPS, run_view.OWN, run_view.OVERDUE} - {waiting.NOTHING} <= set(parts.WAITS)


def test_a_run_is_taken_in_handed_over_and_done() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", sent_ms=30, after_ms=40)
    shard.report(STARTED, after_ms=25, told_ms=5)
    shard.report(HEARTBEAT, after_ms=50)
    shard.report(SUCCEEDED, after_ms=100, told_ms=7)
    assert told(shard) == {parts.INTAKE: 30, parts.HANDOVER: 20, parts.RUNNING: 148, parts.SETTLING: 7}
    assert parts.waited_ms(told(shard)) == 50


def test_a_worker_whose_first_report_is_its_last_has_run_all_the_time() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(SUCCEEDED, after_ms=100, told_ms=10)
    assert told(shard) == {parts.RUNNING: 90, parts.SETTLING: 10}


def test_a_worker_that_returns_the_run_has_not_run_it() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(RETURNED, after_ms=100, told_ms=10)
    shard.report(STARTED, attempt=2, after_ms=20)
    first, _ = shard.life().attempts
    assert (first.outcome, parts.added(first.took)) == (RETURNED, {parts.HANDOVER: 90, parts.SETTLING: 10})
    assert told(shard) == {parts.HANDOVER: 110, parts.SETTLING: 10}


def test_a_run_in_flight_when_the_record_ends() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.step(after_ms=40)
    assert told(shard) == {parts.HANDOVER: 40}
    shard.report(STARTED, told_ms=10)
    shard.step(after_ms=100)
    assert told(shard) == {parts.HANDOVER: 30, parts.RUNNING: 110}


def test_earlier_runs_of_its_own_tenant() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("a", "first", "second")
    shard.submit("a", "r")
    shard.finish(shard.dispatches[0], after_ms=70)
    shard.finish(shard.dispatches[1], after_ms=80)
    assert told(shard) == {"own": 70, "window_runs": 80}
    assert shard.life().attempts[0].waited_last == "window_runs"


def test_the_turns_of_others_and_a_full_window() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1", "z2")
    shard.submit("a", "r", cost=200)
    shard.finish(shard.dispatches[0], after_ms=10)  # z2 goes: its round comes first
    shard.finish(shard.dispatches[1], after_ms=20)
    assert told(shard) == {"turn": 10, "window_runs": 20}


def test_room_in_the_window_for_its_tokens() -> None:
    shard = Watched(make_policy(runs=None, tokens=100))
    shard.submit("z", "z1", cost=60)
    shard.submit("a", "r", cost=60)
    shard.finish(shard.dispatches[0], after_ms=10)
    assert told(shard) == {"window_tokens": 10}


def test_another_class() -> None:
    shard = Watched(make_policy(runs=1, classes=("high", "low")))
    shard.submit("z", "z1", "z2", class_="high")
    shard.submit("a", "r", class_="low")
    shard.finish(shard.dispatches[0], after_ms=10)
    shard.finish(shard.dispatches[1], after_ms=20)
    assert told(shard) == {"class": 10, "window_runs": 20}


def test_the_caps_of_its_tenant_hold_it_back_wherever_it_stands() -> None:
    shard = Watched(make_policy(runs=9, rules={"a": TenantRules(max_runs_in_flight=1)}))
    shard.submit("a", "first", "second")
    shard.submit("a", "r")
    shard.finish(shard.dispatches[0], after_ms=10)
    shard.finish(shard.dispatches[1], after_ms=20)
    assert told(shard) == {"cap_runs": 30}
    assert shard.life().attempts[0].waited_last == "cap_runs"


def test_the_cap_of_tokens() -> None:
    shard = Watched(make_policy(runs=9, rules={"a": TenantRules(max_tokens_in_flight=100)}))
    shard.submit("a", "first", cost=90)
    shard.submit("a", "r", cost=90)
    shard.finish(shard.dispatches[0], after_ms=10)
    assert told(shard) == {"cap_tokens": 10}


def test_a_paused_tenant() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    shard.state_policy(make_policy(runs=1, rules={"a": TenantRules(paused=True)}), after_ms=5)
    shard.finish(shard.dispatches[0], after_ms=10)
    shard.state_policy(make_policy(runs=1), after_ms=20)
    assert told(shard) == {"paused": 30, "window_runs": 5}
    assert [(each.name, each.author) for each in shard.life().policies] == [("test", "an operator")] * 2


def test_the_time_it_asked_for() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", not_before_ms=shard.now_ms + 500)
    shard.step(after_ms=510)
    assert told(shard) == {"delayed": 510}
    assert shard.life().attempts[0].waited_last == "delayed"


def test_the_pause_after_an_attempt_that_failed() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.report(FAILED, retryable=True, after_ms=100)
    shard.step(after_ms=55)
    life = shard.life()
    assert divided(life) == {"backoff": 55, "running": 100}
    assert [attempt.waited for attempt in life.attempts] == [{}, {"backoff": 55}]
    assert [attempt.waited_last for attempt in life.attempts] == [parts.INTAKE, parts.BACKOFF]


def test_an_attempt_that_nobody_took_up() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.step(after_ms=1_010)
    assert told(shard) == {"unheard": 1_010}
    shard.step(after_ms=50)
    assert told(shard) == {"backoff": 50, "unheard": 1_010}


def test_an_attempt_that_fell_silent() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.report(STARTED, after_ms=30, told_ms=10)
    shard.report(HEARTBEAT, after_ms=200)
    shard.step(after_ms=1_000)
    assert told(shard) == {"handover": 20, "running": 210, "silent": 1_000}


def test_a_time_without_owner_is_the_outage_whatever_else_held_it_back() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    shard.step(Takeover(2), after_ms=300)
    shard.finish(shard.dispatches[0], after_ms=10)
    life = shard.life()
    assert divided(life) == {"outage": 300, "window_runs": 10}
    assert [(each.end_ms - each.begin_ms, each.epoch) for each in life.outages] == [(300, 2)]


def test_a_new_owner_that_dispatches_at_once_has_ended_the_outage() -> None:
    shard = Watched(make_policy(runs=1, rules={"a": TenantRules(max_runs_in_flight=1)}))
    shard.submit("a", "first")
    shard.submit("a", "r")
    shard.step(Takeover(2), make_report(shard.dispatches[0], tokens=1), after_ms=300)
    life = shard.life()
    assert divided(life) == {"outage": 300}
    assert life.attempts[0].waited_last == parts.OUTAGE


def test_what_came_while_nobody_was_there_waited_for_an_owner() -> None:
    shard = Watched(make_policy())
    shard.step(Takeover(2), after_ms=300)
    shard.submit("a", "r", after_ms=20, sent_ms=120)
    life = shard.life()
    assert divided(life) == {"intake": 20, "outage": 100}
    assert [outage.begin_ms for outage in life.outages] == [life.arrived_ms]


def test_what_came_before_the_first_owner_waited_for_it() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", after_ms=5, sent_ms=605)
    assert told(shard) == {"intake": 5, "outage": 600}


def test_a_step_that_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "MAX_DISPATCHES", 1)
    shard = Watched(make_policy(runs=9))
    shard.submit("a", "first", "r", cost=10)
    shard.step(after_ms=3)
    assert told(shard) == {"visit": 3}


def test_a_run_past_its_deadline_that_is_yet_to_be_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.core.expiry.MAX_ENDED", 1)
    shard = Watched(make_policy(runs=1))
    deadline_ms = shard.now_ms + 100
    shard.submit("z", "z1", cost=1)
    shard.submit("a", "first", "r", deadline_ms=deadline_ms)
    shard.step(after_ms=100)
    shard.step(after_ms=4)
    life = shard.life()
    assert divided(life) == {"own": 100, "overdue": 4}
    assert life.end == "expired"


def test_a_record_whose_time_cannot_be_is_held_between_the_steps() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", sent_ms=-5_000)  # a clock that is ahead
    shard.report(STARTED, after_ms=10, told_ms=9_999)  # and one that is behind
    shard.report(HEARTBEAT, after_ms=10, told_ms=-70)
    shard.report(SUCCEEDED, after_ms=10, told_ms=15)  # before its own last report
    assert told(shard) == {"running": 20, "settling": 10}


def test_a_request_of_unknown_time_comes_with_its_step() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r", sent_ms=shard.now_ms)
    assert shard.life().arrived_ms == shard.now_ms
    assert told(shard) == {}


@pytest.mark.parametrize("told_ms", [0, 5])
def test_a_report_without_a_time_counts_from_its_step(told_ms: int) -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(SUCCEEDED, after_ms=10, told_ms=told_ms)
    shard.stamps.clear()
    assert told(shard) == {"running": 10}


def test_cancelled_while_it_waited() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    shard.step(make_cancel("a", "r"), after_ms=10)
    shard.step(after_ms=99)
    life = shard.life()
    assert (life.end, divided(life)) == (CANCELLED, {"window_runs": 10})


def test_cancelled_in_flight_its_time_ends_there_and_its_cost_comes_later() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(STARTED, after_ms=10)
    shard.step(make_cancel("a", "r"), after_ms=30)
    assert not shard.watched().done, "its account is open"
    shard.report(FAILED, after_ms=500, tokens=7)
    life = shard.life()
    assert (life.end, divided(life)) == (CANCELLED, {"handover": 10, "running": 30})
    (attempt,) = life.attempts
    assert (attempt.revoked, attempt.outcome, attempt.actual) == ("cancelled by its tenant", FAILED, 7)
    assert shard.watched().done


def test_an_attempt_given_up_is_heard_of_while_the_run_waits() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r", cost=40)
    lost = shard.dispatches[0]
    shard.step(after_ms=1_000)
    shard.step(make_report(lost, SUCCEEDED, tokens=55), after_ms=20)
    life = shard.life()
    assert (life.end, divided(life)) == (SUCCEEDED, {"backoff": 20, "unheard": 1_000})
    assert (life.attempts[0].outcome, life.attempts[0].amended) == ("lost", 55)


def test_dead_lettered() -> None:
    shard = Watched(make_policy(leases=replace(LEASES, max_attempts=1)))
    shard.submit("a", "r")
    shard.report(FAILED, retryable=True, after_ms=10)
    life = shard.life()
    assert (life.end, divided(life)) == ("dead_lettered", {"running": 10})
    assert life.rejection is not None


def test_between_classes_that_share() -> None:
    classes = (PriorityClass(name="high", weight=9), PriorityClass(name="low", weight=1))
    shard = Watched(replace(make_policy(runs=1), between_classes="shares", classes=classes))
    shard.submit("z", "z1", "z2", "z3", class_="high", cost=10)
    shard.submit("a", "first", class_="low", cost=10)
    shard.submit("a", "r", class_="low", cost=10)
    for _ in range(4):
        shard.finish(shard.dispatches[-1], after_ms=10)
    assert set(told(shard)) <= {"own", "class", "window_runs"}


def test_what_is_waited_is_what_no_worker_did() -> None:
    assert parts.waited_ms({"own": 1, "handover": 2, "unheard": 4, "running": 8, "silent": 16, "settling": 32}) == 7
