"""A new policy: what binds at once, what at the next visit, and what becomes of who is no longer named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core import reasons
from streams.core.inputs import SetPolicy
from streams.core.policy import TenantRules
from streams.core.records import PolicyRecord
from tests.assertions import assert_drained
from tests.builders import make_policy
from tests.drivers import Driver


def test_a_policy_is_written_with_its_version() -> None:
    driver = Driver()
    assert driver.shard.policy_version == -1
    policy = make_policy()
    effects = driver.step(SetPolicy(41, policy))
    assert driver.shard.policy_version == 41
    assert effects.changed["policy",] == PolicyRecord(version=41, policy=policy)


@pytest.mark.parametrize("position", [41, 40])
def test_a_policy_that_was_applied_before_changes_nothing(position: int) -> None:
    driver = Driver()
    driver.step(SetPolicy(41, make_policy(quantum=5)))
    effects = driver.step(SetPolicy(position, make_policy(quantum=6)))
    assert set(effects.changed) == {("shard",)}
    assert driver.shard.snapshot().shard.quantum == 5


def test_weights_bind_on_queued_runs_at_the_next_visit() -> None:
    driver = Driver(make_policy(runs=1))
    requests = [driver.requests(tenant, [f"{tenant}{number}" for number in range(8)]) for tenant in "ab"]
    driver.step(*requests[0], *requests[1])
    driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1])
    driver.set_policy(make_policy(runs=1, weights={"a": 3}))
    for _ in range(8):
        driver.succeed(driver.dispatches[-1])
    assert driver.served() == ["a0", "b0", "a1", "b1", "a2", "a3", "a4", "b2", "a5", "a6", "a7"]


def test_rounds_that_have_passed_are_booked_at_the_old_weight() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "dear", cost=1_000)
    driver.succeed(driver.dispatches[0])
    driver.submit("b", *[f"b{number}" for number in range(9)])
    driver.submit("a", "dear2", cost=1_000)
    for _ in range(5):
        driver.succeed(driver.dispatches[-1])
    assert driver.flow("a").deficit == 500
    driver.set_policy(make_policy(runs=1, weights={"a": 2}))
    assert driver.flow("a").deficit == 500
    driver.succeed(driver.dispatches[-1])
    assert driver.flow("a").deficit == 700


def test_the_debt_of_an_idle_tenant_faded_at_the_old_weight() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1")
    driver.succeed(driver.dispatches[0], tokens=1_100)
    driver.submit("b", *[f"b{number}" for number in range(9)])
    driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1])
    before = driver.flow("a").deficit
    effects = driver.set_policy(make_policy(runs=1, weights={"a": 4}))
    assert ("flow", "default", "a") in effects.changed
    assert driver.flow("a").deficit == before
    driver.succeed(driver.dispatches[-1])
    assert driver.flow("a").deficit == before + 400


def test_a_change_that_touches_nobody_writes_nobody() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "a1")
    driver.serve_all()
    assert set(driver.set_policy(make_policy(weights={"b": 7})).changed) == {("shard",), ("policy",)}
    # a is idle and owes nothing: a new weight needs no booking either
    assert set(driver.set_policy(make_policy(weights={"a": 7})).changed) == {("shard",), ("policy",)}


def test_pausing_keeps_what_is_queued_and_resuming_serves_it() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2")
    driver.set_policy(make_policy(runs=1, rules={"a": TenantRules(paused=True)}))
    assert driver.serve_all() == ["a1"]
    assert driver.flow("a").state == "blocked"
    driver.set_policy(make_policy(runs=1))
    assert driver.serve_all() == ["a1", "a2"]


def test_pausing_in_the_middle_of_a_visit_keeps_the_rest_of_the_quantum() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", "a3", cost=40)
    driver.set_policy(make_policy(runs=1, rules={"a": TenantRules(paused=True)}))
    assert driver.flow_row("a").half_visit
    driver.set_policy(make_policy(runs=1))
    assert driver.flow("a").deficit == 60
    assert driver.serve_all() == ["a1", "a2", "a3"]
    assert [dispatch.deficit_before for dispatch in driver.dispatches] == [100, 60, 120]


def test_a_tenant_that_is_named_no_more_is_drained_and_refused() -> None:
    driver = Driver(make_policy(runs=1, weights={"a": 1}))
    driver.submit("a", "a1", "a2")
    driver.set_policy(make_policy(runs=1, weights={"b": 1}, closed=True))
    (rejection,) = driver.submit("a", "a3").rejections
    assert rejection.reason == reasons.UNKNOWN_TENANT
    assert driver.serve_all() == ["a1", "a2"]
    assert_drained(driver.shard)


def test_a_class_that_is_named_no_more_is_served_last_and_refused() -> None:
    driver = Driver(make_policy(runs=1, classes=("old", "new")))
    driver.submit("a", "a1", "a2", class_="old")
    driver.set_policy(make_policy(runs=1, classes=("new",)))
    driver.submit("a", "b1", class_="new")
    (rejection,) = driver.submit("a", "a3", class_="old").rejections
    assert rejection.reason == reasons.UNKNOWN_CLASS
    driver.take_over()
    assert driver.serve_all() == ["a1", "b1", "a2"]
    assert_drained(driver.shard)


def test_a_class_that_comes_back_has_kept_its_places() -> None:
    driver = Driver(make_policy(classes=("old", "new")))
    driver.submit("a", "a1", class_="old")
    driver.set_policy(make_policy(classes=("new",)))
    driver.set_policy(make_policy(classes=("new", "old")))
    driver.submit("b", "b1", class_="old")
    assert driver.flow_row("b", "old").place == 1


def test_a_smaller_window_takes_nothing_back() -> None:
    driver = Driver(make_policy(runs=3))
    driver.submit("a", "a1", "a2", "a3", "a4")
    driver.set_policy(make_policy(runs=1))
    assert driver.shard.snapshot().shard.flight_runs == 3
    driver.succeed(*driver.dispatches[:2])
    assert len(driver.dispatches) == 3
    driver.succeed(driver.dispatches[2])
    assert len(driver.dispatches) == 4


def test_a_larger_window_is_filled_at_once() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", "a3")
    assert len(driver.set_policy(make_policy(runs=3)).dispatches) == 2


def test_new_limits_hold_for_what_comes_in_from_now_on() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", "a3")
    policy = make_policy(runs=1, rules={"a": replace(TenantRules(), max_queued_runs=1)})
    driver.set_policy(policy)
    assert driver.submit("a", "a4").rejections[0].reason == reasons.QUEUE_FULL
    assert driver.shard.snapshot().shard.queued_runs == 2
