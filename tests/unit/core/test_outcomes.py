"""How attempts end: each way settles once, frees its place once, and does the right thing with the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.core import counts, reasons
from streams.core.effects import Effects, Revoke, Settlement
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED, Completion
from streams.core.policy import Estimates, Leases, Policy
from streams.core.records import RetryRecord
from tests.assertions import assert_drained, rows_of
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver

LEASES = Leases(lease_ms=100, max_lease_ms=1_000, max_attempts=3, backoff_ms=10, max_backoff_ms=35)
RULES = make_policy(leases=LEASES)


def running(policy: Policy = RULES, **fields: Any) -> Driver:
    """One run of 100 tokens in flight."""
    driver = Driver(policy)
    driver.submit("a", "r1", **{"cost": 100} | fields)
    return driver


def tell(driver: Driver, status: str, tokens: int | None = None, *, retryable: bool = False) -> Effects:
    """Report on the last attempt dispatched."""
    return driver.step(make_report(driver.dispatches[-1], status, tokens, retryable=retryable))


def lose(driver: Driver) -> Effects:
    """Let the lease of the attempt in flight run out."""
    return driver.step(after_ms=LEASES.lease_ms)


def settlement(
    outcome: str, actual: int, *, attempt: int = 1, estimate: int = 100, reported: bool = True
) -> Settlement:
    return Settlement("a", "r1", attempt, outcome, estimate, actual, reported=reported)


def test_success_settles_learns_and_ends() -> None:
    driver = running()
    effects = tell(driver, SUCCEEDED, 130)
    assert effects.settlements == [settlement(SUCCEEDED, 130)]
    assert effects.counts == {counts.SUCCEEDED: 1}
    assert ("history", "a", "flow") in driver.rows
    assert ("ended", str(effects.step)) in driver.rows
    flow = driver.flow("a")
    assert (flow.deficit, flow.charged, flow.actual, flow.ended) == (-30, 130, 130, 1)
    assert_drained(driver.shard)


def test_failure_for_good_ends_the_run_and_is_charged() -> None:
    driver = running()
    effects = tell(driver, FAILED, 40)
    assert effects.settlements == [settlement(FAILED, 40)]
    assert effects.counts == {counts.FAILED: 1}
    assert ("history", "a", "flow") in driver.rows
    assert_drained(driver.shard)


def test_a_retryable_failure_is_charged_and_comes_back_after_a_pause() -> None:
    driver = running()
    effects = tell(driver, FAILED, 40, retryable=True)
    assert effects.settlements == [settlement(FAILED, 40)]
    assert effects.counts == {counts.RETRIED: 1}
    assert driver.rows["retry", "a", "r1"] == RetryRecord("a", "r1", attempt=1, tries=1, ready_ms=START_MS + 10)
    assert driver.shard.next_timer_ms() == START_MS + 10
    assert driver.step(after_ms=9).dispatches == []
    assert [dispatch.attempt for dispatch in driver.step(after_ms=1).dispatches] == [2]


def test_the_pause_doubles_up_to_its_limit() -> None:
    driver = running(max_attempts=9)
    pauses = []
    for _ in range(4):
        tell(driver, FAILED, retryable=True)
        pauses.append((driver.shard.next_timer_ms() or 0) - driver.now_ms)
        driver.step(after_ms=pauses[-1])
    assert pauses == [10, 20, 35, 35]


def test_attempts_used_up_end_as_a_dead_letter() -> None:
    driver = running(max_attempts=2, body=b"payload")
    tell(driver, FAILED, 40, retryable=True)
    driver.step(after_ms=10)
    effects = tell(driver, FAILED, 50, retryable=True)
    (rejection,) = effects.rejections
    assert rejection.reason == reasons.DEAD_LETTERED
    assert rejection.detail == "attempt 2: boom; 2 attempts allowed"
    assert (rejection.limit, rejection.value, rejection.retry_after_ms) == (2, 2, None)
    assert rejection.body == b"payload"
    assert effects.counts == {counts.DEAD_LETTERED: 1}
    assert driver.flow("a").actual == 90
    assert_drained(driver.shard)


def test_a_retryable_failure_without_words_says_that_it_failed() -> None:
    driver = running(max_attempts=1)
    report = replace(make_report(driver.dispatches[0], FAILED, 40, retryable=True), error=None)
    assert "it failed" in driver.step(report).rejections[0].detail


def test_a_returned_run_costs_nothing_counts_no_attempt_and_goes_at_once() -> None:
    driver = running(max_attempts=1)
    tell(driver, HEARTBEAT, 500)
    effects = tell(driver, RETURNED, 70)
    assert effects.settlements == [settlement(RETURNED, 0)]
    assert effects.counts == {counts.RETURNED: 1, counts.DISPATCHED: 1}
    assert [dispatch.attempt for dispatch in effects.dispatches] == [2]
    assert driver.flow("a").actual == 0
    assert ("history", "a", "flow") not in driver.rows


def test_a_run_without_usage_is_settled_at_the_estimate_and_flagged() -> None:
    driver = running()
    effects = tell(driver, SUCCEEDED)
    assert effects.settlements == [settlement(SUCCEEDED, 100, reported=False)]
    assert effects.counts == {counts.SUCCEEDED: 1, counts.UNREPORTED: 1}
    assert ("history", "a", "flow") not in driver.rows  # nothing was learned


def test_without_usage_what_a_heartbeat_said_stands_if_it_is_more() -> None:
    driver = running()
    tell(driver, HEARTBEAT, 250)
    assert tell(driver, SUCCEEDED).settlements == [settlement(SUCCEEDED, 250, reported=False)]


def test_a_run_that_spent_nothing_is_charged_the_minimum() -> None:
    driver = running(make_policy(estimates=Estimates(source="hint", min_charge=3)))
    assert tell(driver, SUCCEEDED, 0).settlements == [settlement(SUCCEEDED, 3)]


@pytest.mark.parametrize("status", [STARTED, HEARTBEAT])
def test_a_sign_of_life_extends_the_lease(status: str) -> None:
    driver = running()
    driver.step(after_ms=60)
    tell(driver, status)
    assert driver.shard.next_timer_ms() == START_MS + 160
    driver.step(after_ms=99)
    assert driver.shard.snapshot().shard.flight_runs == 1


def test_a_heartbeat_charges_what_exceeds_the_estimate_at_once() -> None:
    driver = running()
    assert tell(driver, HEARTBEAT, 90).settlements == []
    assert driver.flow("a").charged == 100
    tell(driver, HEARTBEAT, 180)
    flow = driver.flow("a")
    assert (flow.deficit, flow.charged, flow.actual) == (-80, 180, 0)
    tell(driver, SUCCEEDED, 200)
    assert driver.flow("a").charged == 200


def test_a_silent_attempt_is_lost_and_costs_nothing_and_counts_for_nothing() -> None:
    driver = running(max_attempts=1)
    effects = lose(driver)
    assert effects.settlements == [settlement("lost", 0)]
    assert effects.counts == {counts.LOST: 1, counts.RETRIED: 1}
    row = driver.rows["retry", "a", "r1"]
    assert row == RetryRecord("a", "r1", attempt=1, tries=0, ready_ms=driver.now_ms + 10, lost={1: 0})


def test_an_attempt_that_was_heard_of_and_lost_counts_and_costs_what_it_owned_up_to() -> None:
    driver = running(max_attempts=1)
    tell(driver, HEARTBEAT, 30)
    effects = lose(driver)
    assert effects.settlements == [settlement("lost", 30)]
    assert effects.rejections[0].reason == reasons.DEAD_LETTERED
    assert "its lease ran out" in effects.rejections[0].detail
    assert_drained(driver.shard)


def lost_and_back(**fields: Any) -> Driver:
    """Attempt 1 was heard of and lost; attempt 2 is in flight."""
    driver = running(**fields)
    tell(driver, HEARTBEAT, 30)
    lose(driver)
    driver.step(after_ms=10)
    assert [dispatch.attempt for dispatch in driver.dispatches] == [1, 2]
    return driver


def late(driver: Driver, status: str, tokens: int | None = None) -> Effects:
    return driver.step(make_report(driver.dispatches[0], status, tokens))


def test_a_late_success_ends_the_run_and_revokes_the_later_attempt() -> None:
    driver = lost_and_back()
    effects = late(driver, SUCCEEDED, 120)
    assert effects.settlements == [settlement(SUCCEEDED, 120, estimate=30)]
    assert effects.revokes == [Revoke(3, "a", "r1", 2, "an earlier attempt has succeeded")]
    assert effects.counts == {counts.LATE: 1, counts.SUCCEEDED: 1, counts.REVOKED: 1}
    assert driver.flow("a").actual == 120
    effects = tell(driver, SUCCEEDED, 80)  # the later attempt is charged when it comes, and that is all
    assert effects.settlements == [settlement(SUCCEEDED, 80, attempt=2)]
    assert effects.counts == {}
    assert driver.flow("a").actual == 200
    assert_drained(driver.shard)


def test_a_late_success_takes_the_run_out_of_the_queue() -> None:
    driver = running()
    lose(driver)
    effects = late(driver, SUCCEEDED, 120)
    assert effects.revokes == []
    assert driver.step(after_ms=10).dispatches == []
    assert driver.flow("a").actual == 120
    assert_drained(driver.shard)


def test_a_late_report_is_charged_once() -> None:
    driver = lost_and_back()
    late(driver, FAILED, 120)
    before = rows_of(driver.shard)
    effects = late(driver, FAILED, 500)
    assert effects.counts == {counts.UNKNOWN: 1}
    assert set(effects.changed) == {("shard",)}
    before.pop(("shard",))
    assert before.items() <= rows_of(driver.shard).items()
    assert driver.flow("a").actual == 120


def test_a_late_failure_leaves_the_later_attempt_alone() -> None:
    driver = lost_and_back()
    effects = late(driver, FAILED, 120)
    assert effects.settlements == [settlement(FAILED, 120, estimate=30)]
    assert effects.counts == {counts.LATE: 1}
    assert driver.shard.snapshot().shard.flight_runs == 1
    row = driver.rows["retry", "a", "r1"]
    assert isinstance(row, RetryRecord)
    assert row.lost == {}


@pytest.mark.parametrize("status", [STARTED, HEARTBEAT])
def test_a_late_sign_of_life_is_only_counted(status: str) -> None:
    driver = lost_and_back()
    effects = late(driver, status, 900)
    assert effects.counts == {counts.LATE: 1}
    assert set(effects.changed) == {("shard",)}


def test_a_late_report_without_usage_leaves_the_charge() -> None:
    driver = lost_and_back()
    assert late(driver, SUCCEEDED).settlements == []
    assert driver.flow("a").actual == 30


def test_a_late_return_gives_nothing_back() -> None:
    driver = lost_and_back()
    assert late(driver, RETURNED, 0).settlements == []
    assert driver.flow("a").actual == 30


def test_a_late_run_that_spent_nothing_is_charged_the_minimum() -> None:
    driver = running(make_policy(leases=LEASES, estimates=Estimates(source="hint", min_charge=3)))
    lose(driver)
    assert late(driver, SUCCEEDED, 0).settlements == [settlement(SUCCEEDED, 3, estimate=0)]


@pytest.mark.parametrize(
    "report",
    [
        Completion(0, "a", "r1", 99, SUCCEEDED, 5),
        Completion(0, "a", "nope", 1, SUCCEEDED, 5),
        Completion(0, "nobody", "r1", 1, SUCCEEDED, 5),
    ],
    ids=["attempt", "run", "tenant"],
)
def test_reports_on_what_nobody_knows_are_counted_and_dropped(report: Completion) -> None:
    effects = running().step(report)
    assert effects.counts == {counts.UNKNOWN: 1}
    assert set(effects.changed) == {("shard",)}


def test_a_second_success_changes_nothing() -> None:
    driver = running()
    tell(driver, SUCCEEDED, 130)
    effects = tell(driver, SUCCEEDED, 130)
    assert effects.counts == {counts.UNKNOWN: 1}
    assert driver.flow("a").actual == 130


def test_cancel_of_a_queued_run_charges_nothing() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "r1", "r2")
    effects = driver.step(make_cancel("a", "r2"))
    assert effects.counts == {counts.CANCELLED: 1}
    assert ("run", "a", "r2") not in driver.rows
    assert driver.serve_all() == ["r1"]
    assert driver.flow("a").actual == 100


def test_cancel_of_a_delayed_run() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", not_before_ms=START_MS + 50)
    driver.step(make_cancel("a", "r1"))
    assert driver.step(after_ms=50).dispatches == []
    assert driver.shard.next_timer_ms() is None


def test_cancel_of_a_run_in_flight_revokes_it_and_waits_for_its_bill() -> None:
    driver = running()
    effects = driver.step(make_cancel("a", "r1"))
    assert effects.revokes == [Revoke(2, "a", "r1", 1, "cancelled by its tenant")]
    assert effects.counts == {counts.CANCELLED: 1, counts.REVOKED: 1}
    assert driver.shard.snapshot().shard.flight_runs == 1
    effects = tell(driver, FAILED, 60, retryable=True)
    assert effects.settlements == [settlement(FAILED, 60)]
    assert effects.counts == {}
    assert_drained(driver.shard)


def test_a_revoked_attempt_that_stays_silent_is_settled_at_what_it_owned_up_to() -> None:
    driver = running()
    tell(driver, HEARTBEAT, 30)
    driver.step(make_cancel("a", "r1"))
    effects = lose(driver)
    assert effects.settlements == [settlement("lost", 30)]
    assert effects.counts == {counts.LOST: 1}
    assert_drained(driver.shard)


@pytest.mark.parametrize(("tenant", "run_id"), [("nobody", "r1"), ("a", "nope")])
def test_cancel_of_what_nobody_knows_is_counted(tenant: str, run_id: str) -> None:
    effects = running().step(make_cancel(tenant, run_id))
    assert effects.counts == {counts.UNKNOWN: 1}
    assert set(effects.changed) == {("shard",)}
