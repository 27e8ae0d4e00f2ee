"""Who may come in, and what the others are told."""

from __future__ import annotations

import pytest

from streams.core import reasons
from streams.core.effects import Effects, Rejection
from streams.core.policy import Limits, Memory, Overload, Policy, TenantRules
from streams.core.records import RunRecord
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver


def refusal(effects: Effects) -> Rejection:
    """Return the only refusal of a step that did nothing else."""
    (rejection,) = effects.rejections
    assert set(effects.changed) == {("shard",)}
    assert effects.counts == {"refused": 1, f"refused.{rejection.reason}": 1}
    return rejection


def full(policy: Policy, *, queued: int = 3) -> Driver:
    """A driver whose tenant `a` holds the only place and has `queued` runs of 100 tokens behind it."""
    driver = Driver(policy)
    driver.submit("a", "r0")
    driver.submit("a", *[f"r{number + 1}" for number in range(queued)])
    return driver


def test_an_accepted_run_is_written_with_what_its_retries_need() -> None:
    driver = full(make_policy(runs=1), queued=0)
    driver.submit(
        "b",
        "r1",
        cost=60,
        workflow="report",
        max_tokens=80,
        not_before_ms=START_MS + 5,
        deadline_ms=START_MS + 500,
        max_attempts=7,
        lease_ms=900,
        submitted_ms=77,
        body=b"payload",
    )
    assert driver.rows["run", "b", "r1"] == RunRecord(
        tenant="b",
        run_id="r1",
        workflow="report",
        class_="default",
        position=3,
        estimate=60,
        max_tokens=80,
        deadline_ms=START_MS + 500,
        max_attempts=7,
        lease_ms=900,
        submitted_ms=77,
        not_before_ms=START_MS + 5,
        body=b"payload",
    )


def test_what_a_request_does_not_say_the_policy_says() -> None:
    driver = full(make_policy(runs=1, classes=("first", "second")), queued=1)
    row = driver.rows["run", "a", "r1"]
    assert isinstance(row, RunRecord)
    assert (row.class_, row.max_attempts, row.lease_ms, row.not_before_ms) == ("first", 1_000, LONG_MS, 0)


def test_a_run_behind_others_changes_only_its_own_row() -> None:
    driver = full(make_policy(runs=1))
    assert set(driver.submit("a", "next").changed) == {("shard",), ("run", "a", "next")}


def test_unknown_class() -> None:
    rejection = refusal(Driver(make_policy()).submit("a", "r1", class_="gold", body=b"payload"))
    assert rejection == Rejection(
        tenant="a",
        run_id="r1",
        reason=reasons.UNKNOWN_CLASS,
        detail="class 'gold' is not in policy 'test'",
        limit=None,
        value=None,
        retry_after_ms=None,
        position=2,
        body=b"payload",
    )


def test_unknown_tenant_if_the_policy_is_closed() -> None:
    driver = Driver(make_policy(closed=True, weights={"a": 1}))
    assert refusal(driver.submit("b", "r1")).reason == reasons.UNKNOWN_TENANT
    assert not driver.submit("a", "r1").rejections


def test_duplicate_while_queued_while_in_flight_and_after_the_end() -> None:
    driver = full(make_policy(runs=1), queued=1)
    for run_id in ("r0", "r1"):
        rejection = refusal(driver.submit("a", run_id))
        assert (rejection.reason, rejection.retry_after_ms) == (reasons.DUPLICATE, None)
        assert "has not ended yet" in rejection.detail
    driver.serve_all()
    rejection = refusal(driver.submit("a", "r1"))
    assert rejection.reason == reasons.DUPLICATE
    assert "has ended lately" in rejection.detail


def test_a_run_id_is_unique_within_its_tenant_only() -> None:
    driver = full(make_policy(runs=1))
    assert not driver.submit("b", "r1").rejections


def test_a_run_whose_revoked_attempt_is_still_in_flight_is_a_duplicate_even_if_forgotten() -> None:
    """Its attempt 1 and that of a new run under the same id could not be told apart: the window would leak."""
    driver = Driver(make_policy(memory=Memory(ended_runs=0)))
    driver.submit("a", "r1")
    driver.step(make_cancel("a", "r1"))
    assert refusal(driver.submit("a", "r1")).reason == reasons.DUPLICATE
    driver.take_over()
    assert refusal(driver.submit("a", "r1")).reason == reasons.DUPLICATE
    driver.step(make_report(driver.dispatches[0], "succeeded", 5))
    driver.submit("a", "r1")
    assert [dispatch.attempt for dispatch in driver.dispatches] == [1, 1]


@pytest.mark.parametrize(("deadline", "refused"), [(START_MS, True), (START_MS - 9, True), (START_MS + 1, False)])
def test_deadline_passed(deadline: int, refused: bool) -> None:
    effects = Driver(make_policy()).submit("a", "r1", deadline_ms=deadline)
    assert bool(effects.rejections) is refused
    if refused:
        rejection = refusal(effects)
        assert (rejection.reason, rejection.limit, rejection.value) == (reasons.DEADLINE_PASSED, deadline, START_MS)


def test_too_large_by_the_estimate() -> None:
    driver = Driver(make_policy(limits=Limits(max_run_tokens=500)))
    rejection = refusal(driver.submit("a", "r1", cost=501))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.TOO_LARGE, 500, 501)
    assert rejection.retry_after_ms is None
    assert not driver.submit("a", "r1", cost=500).rejections


def test_tenant_paused() -> None:
    driver = Driver(make_policy(rules={"a": TenantRules(paused=True)}))
    assert refusal(driver.submit("a", "r1")).reason == reasons.TENANT_PAUSED
    assert not driver.submit("b", "r1").rejections


def test_queue_full_in_runs() -> None:
    driver = full(make_policy(runs=1, rules={"a": TenantRules(max_queued_runs=3)}))
    rejection = refusal(driver.submit("a", "r9"))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.QUEUE_FULL, 3, 3)
    assert rejection.retry_after_ms == 1_000
    assert not driver.submit("b", "r9").rejections


def test_queue_full_in_tokens() -> None:
    driver = full(make_policy(runs=1, rules={"a": TenantRules(max_queued_tokens=350)}))
    rejection = refusal(driver.submit("a", "r9", cost=51))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.QUEUE_FULL, 350, 300)
    assert rejection.retry_after_ms == 1_000
    assert not driver.submit("a", "r9", cost=50).rejections


def test_a_tenants_limits_hold_from_its_first_run() -> None:
    driver = Driver(make_policy(rules={"a": TenantRules(max_queued_tokens=99)}))
    assert refusal(driver.submit("a", "r1", cost=100)).value == 0


def test_delayed_runs_count_as_queued() -> None:
    driver = Driver(make_policy(rules={"a": TenantRules(max_queued_runs=1)}))
    driver.submit("a", "r1", not_before_ms=START_MS + 100)
    assert refusal(driver.submit("a", "r2")).reason == reasons.QUEUE_FULL


def test_overloaded_counts_all_tenants() -> None:
    driver = full(make_policy(runs=1, limits=Limits(max_queued_runs=4)))
    driver.submit("b", "r1")
    rejection = refusal(driver.submit("c", "r1"))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.OVERLOADED, 4, 4)
    assert rejection.retry_after_ms == 1_000


def test_overloaded_in_bytes_counts_what_is_in_flight_too() -> None:
    driver = Driver(make_policy(runs=1, limits=Limits(max_queued_bytes=1_000)))
    driver.submit("a", "r1", "r2", body=bytes(400))
    rejection = refusal(driver.submit("b", "r1", body=bytes(201)))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.OVERLOADED, 1_000, 800)
    assert rejection.retry_after_ms == 1_000
    assert not driver.submit("b", "r1", body=bytes(200)).rejections
    driver.take_over()
    assert refusal(driver.submit("c", "r1", body=b"1")).value == 1_000
    driver.serve_all()
    assert not driver.submit("c", "r1", body=bytes(1_000)).rejections


@pytest.mark.parametrize("overload", ["refuse", "drop_longest"])
def test_too_large_by_the_payload(overload: Overload) -> None:
    driver = Driver(make_policy(limits=Limits(max_queued_bytes=1_000, overload=overload)))
    rejection = refusal(driver.submit("a", "r1", body=bytes(1_001)))
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.TOO_LARGE, 1_000, 1_001)
    assert rejection.retry_after_ms is None
    assert not driver.submit("a", "r1", body=bytes(1_000)).rejections


def test_a_refused_run_holds_nothing() -> None:
    driver = full(make_policy(runs=1, rules={"a": TenantRules(max_queued_runs=3)}))
    for number in range(50):
        driver.submit("a", f"x{number}")
    driver.serve_all()
    assert driver.submit("a", "good").dispatches


@pytest.mark.parametrize(("places", "retry_after_ms"), [(1, 80_000), (2, 40_000), (100, 1_000)])
def test_retry_after_is_the_time_to_serve_a_tenth_of_the_queue(places: int, retry_after_ms: int) -> None:
    """40 queued: 4 of them, at 20 s each, over the places; at least a second."""
    driver = Driver(make_policy(runs=places, rules={"a": TenantRules(max_queued_runs=40)}))
    for number in range(200):
        driver.submit("b", f"b{number}")
        driver.succeed(driver.dispatches[-1], after_ms=20_000)
    driver.submit("b", *[f"x{number}" for number in range(places)])
    driver.submit("a", *[f"a{number}" for number in range(40)])
    retry = refusal(driver.submit("a", "one more")).retry_after_ms
    assert retry == pytest.approx(retry_after_ms, rel=0.01)


def test_without_a_limit_in_runs_the_places_are_what_is_in_flight() -> None:
    driver = Driver(make_policy(runs=None, tokens=200, quantum=1_000, rules={"a": TenantRules(max_queued_runs=10)}))
    for number in range(200):
        driver.submit("b", f"b{number}")
        driver.succeed(driver.dispatches[-1], after_ms=20_000)
    driver.submit("b", "x1", "x2")
    driver.submit("a", *[f"a{number}" for number in range(10)])
    assert refusal(driver.submit("a", "one more")).retry_after_ms == pytest.approx(10_000, rel=0.01)
