"""A closed policy no longer names a tenant that has work: it is served to the end, or rejected, as the policy says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core import counts, expiry, reasons, removal
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED
from streams.core.policy import Leases, Policy, Removal
from tests.assertions import assert_drained
from tests.builders import make_cancel, make_policy, make_report
from tests.compiled import patched
from tests.drivers import START_MS, Driver

LEASES = Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=100_000, max_attempts=5, backoff_ms=10)


def naming(*tenants: str, on_removal: Removal = "reject", runs: int = 1) -> Policy:
    policy = make_policy(runs=runs, weights=dict.fromkeys(tenants, 1), closed=True, leases=LEASES)
    return replace(policy, on_removal=on_removal)


def working() -> Driver:
    """Tenant `a` has a1 in flight, a2 and a3 queued, a4 delayed; `b` has b1 queued."""
    driver = Driver(naming("a", "b"))
    driver.submit("a", "a1", "a2", "a3", body=b"payload", lease_ms=100_000)
    driver.submit("a", "a4", not_before_ms=START_MS + 50)
    driver.submit("b", "b1", lease_ms=100_000)
    return driver


def test_what_waits_is_rejected_oldest_first() -> None:
    driver = working()
    effects = driver.set_policy(naming("b"))
    assert [each.run_id for each in effects.rejections] == ["a2", "a3", "a4"]
    first = effects.rejections[0]
    assert (first.reason, first.limit, first.value, first.retry_after_ms) == (reasons.UNKNOWN_TENANT, None, None, None)
    assert first.detail == "tenant 'a' is no longer in policy 'test'"
    assert first.body == b"payload"
    assert effects.counts == {counts.REMOVED: 3}
    assert {key[2] for key in driver.rows if key[0] == "run"} == {"a1", "b1"}
    assert driver.serve_all() == ["a1", "b1"]
    assert_drained(driver.shard)


def test_under_serve_all_of_it_is_served() -> None:
    driver = working()
    assert driver.set_policy(naming("b", on_removal="serve")).rejections == []
    assert driver.submit("a", "a5").rejections[0].reason == reasons.UNKNOWN_TENANT
    driver.step(after_ms=50)
    assert sorted(driver.serve_all()) == ["a1", "a2", "a3", "a4", "b1"]
    assert_drained(driver.shard)


def test_an_open_policy_removes_nobody() -> None:
    driver = working()
    assert driver.set_policy(replace(naming("b"), closed=False)).rejections == []
    assert not driver.submit("a", "a5").rejections


def test_what_is_in_flight_runs_to_its_end_and_is_charged() -> None:
    driver = working()
    driver.set_policy(naming("b"))
    assert driver.succeed(driver.dispatches[0], tokens=170).counts[counts.SUCCEEDED] == 1
    assert driver.flow("a").actual == 170


@pytest.mark.parametrize(("status", "cost"), [(FAILED, 40), (RETURNED, 0)])
def test_what_comes_back_is_rejected(status: str, cost: int) -> None:
    driver = working()
    driver.set_policy(naming("b"))
    effects = driver.step(make_report(driver.dispatches[0], status, 40, retryable=True))
    (rejection,) = effects.rejections
    assert (rejection.run_id, rejection.reason) == ("a1", reasons.UNKNOWN_TENANT)
    assert effects.counts[counts.REMOVED] == 1
    assert effects.counts.get(counts.RETRIED, 0) == 0
    assert driver.flow("a").actual == cost
    assert driver.serve_all() == ["a1", "b1"]
    assert_drained(driver.shard)


def test_what_is_lost_is_rejected_and_may_yet_get_its_bill() -> None:
    driver = Driver(naming("a"))
    (dispatch,) = driver.submit("a", "a1", lease_ms=100).dispatches
    driver.step(make_report(dispatch, HEARTBEAT, 30))
    driver.set_policy(naming("b"))
    effects = driver.step(after_ms=100)
    assert [each.reason for each in effects.rejections] == [reasons.UNKNOWN_TENANT]
    driver.succeed(dispatch, tokens=90)
    assert driver.flow("a").actual == 90


def test_a_run_whose_attempts_are_used_up_is_a_dead_letter_all_the_same() -> None:
    driver = Driver(naming("a"))
    (dispatch,) = driver.submit("a", "a1", max_attempts=1).dispatches
    driver.set_policy(naming("b"))
    effects = driver.step(make_report(dispatch, FAILED, 40, retryable=True))
    assert [each.reason for each in effects.rejections] == [reasons.DEAD_LETTERED]


def test_a_retry_that_waits_is_rejected() -> None:
    driver = Driver(naming("a"))
    (dispatch,) = driver.submit("a", "a1").dispatches
    driver.step(make_report(dispatch, FAILED, 40, retryable=True))
    assert [each.run_id for each in driver.set_policy(naming("b")).rejections] == ["a1"]
    assert driver.step(after_ms=1_000).dispatches == []
    assert_drained(driver.shard)


def test_who_is_named_again_may_send_again_what_was_never_dispatched() -> None:
    driver = Driver(naming("a"))
    (dispatch,) = driver.submit("a", "a1", "a2").dispatches
    driver.set_policy(naming("b"))
    driver.step(make_report(dispatch, FAILED, 40, retryable=True))
    driver.set_policy(naming("a"))
    (rejection,) = driver.submit("a", "a1", "a2").rejections
    assert (rejection.run_id, rejection.reason) == ("a1", reasons.DUPLICATE)  # its attempts go on from 1
    assert driver.served() == ["a1", "a2"]


def test_many_take_many_steps_and_none_of_it_is_dispatched_meanwhile() -> None:
    driver = working()
    with patched(expiry, "MAX_ENDED", 2):
        first = driver.set_policy(naming("b", runs=4))
        assert [each.run_id for each in first.rejections] == ["a2", "a3"]
        assert [each.run_id for each in first.dispatches] == ["b1"]  # others needn't wait for that
        assert driver.flow("a").skip in ("paused", "delayed")
        assert driver.shard.next_timer_ms() == driver.now_ms
        second = driver.step()
        assert [each.run_id for each in second.rejections] == ["a4"]
    assert driver.shard.next_timer_ms() == START_MS + 100_000


def test_what_waits_is_gathered_by_and_by() -> None:
    driver = working()
    with patched(removal, "_LOOK", 2):
        assert [each.run_id for each in driver.set_policy(naming("b")).rejections] == ["a2", "a3", "a4"]


def test_a_shard_that_is_loaded_in_the_middle_goes_on() -> None:
    driver = working()
    with patched(expiry, "MAX_ENDED", 1):
        driver.set_policy(naming("b"))
        driver.take_over()
        rejected = [each.run_id for each in driver.step().rejections]
        assert driver.shard.next_timer_ms() is not None
    assert {key[2] for key in driver.rows if key[0] == "run"} == {"a1", "b1"}
    assert rejected == ["a4"]


def test_who_is_named_again_in_the_middle_keeps_what_is_left() -> None:
    driver = working()
    with patched(expiry, "MAX_ENDED", 1):
        driver.set_policy(naming("b"))
        driver.set_policy(naming("a", "b"))
    driver.step(after_ms=50)
    assert sorted(driver.serve_all()) == ["a1", "a3", "a4", "b1"]


def test_several_tenants_are_removed_in_the_order_of_their_names() -> None:
    driver = Driver(naming("a", "b", "c"))
    driver.submit("c", "c0", "c1")
    driver.submit("a", "a1")
    driver.submit("b", "b1")
    assert [each.run_id for each in driver.set_policy(naming("a")).rejections] == ["b1", "c1"]


def test_a_removed_tenant_whose_last_run_is_cancelled_meanwhile() -> None:
    driver = working()
    with patched(expiry, "MAX_ENDED", 2):
        driver.set_policy(naming("b"))
        effects = driver.step(make_cancel("a", "a4"))
    assert effects.rejections == []
    assert [each.run_id for each in driver.succeed(driver.dispatches[0]).dispatches] == ["b1"]


def test_closed_then_paused_then_resumed_it_goes_on_at_the_old_place() -> None:
    driver = Driver(naming("a", "b", on_removal="serve"))
    driver.submit("a", "a1", "a2", "a3")
    driver.submit("b", "b1", "b2")
    driver.set_policy(naming("b", on_removal="serve"))
    place = driver.flow_row("a").place
    paused = naming("b", on_removal="serve")
    driver.set_policy(replace(paused, default=replace(paused.default, paused=True)))
    driver.succeed(driver.dispatches[0])
    assert driver.flow("a").state == "blocked"
    driver.succeed(driver.dispatches[1])
    driver.set_policy(naming("a", "b"))
    assert driver.flow_row("a").place == place
    assert driver.serve_all() == ["a1", "b1", "b2", "a2", "a3"]
    assert driver.submit("a", "a4").dispatches
