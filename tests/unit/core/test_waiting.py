"""Each word that says why nothing more starts, where it is right; and when a shard is stuck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core import dispatching
from streams.core.inputs import HEARTBEAT, SUCCEEDED
from streams.core.policy import Leases, Policy, PriorityClass, TenantRules
from streams.core.shard import Shard
from streams.core.waiting import SKIPS, WAITS
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.compiled import interpreted
from tests.drivers import Driver


def skips(driver: Driver) -> dict[str, str]:
    views = driver.shard.snapshot().flows
    assert {view.skip for view in views} <= set(SKIPS)
    return {view.tenant: view.skip for view in views}


def waits_for(driver: Driver) -> str:
    word = driver.shard.snapshot().shard.waiting_for
    assert word in WAITS
    return word


def stuck(driver: Driver) -> bool:
    return driver.shard.snapshot().shard.stuck


def test_nothing_waits() -> None:
    driver = Driver(make_policy())
    assert waits_for(driver) == "work"
    driver.submit("a", "r1")
    assert skips(driver) == {"a": ""}
    assert waits_for(driver) == "work"


def test_the_window_has_no_place() -> None:
    driver = Driver(make_policy(runs=1, quantum=100))
    driver.submit("a", "a1", "a2", cost=50)
    driver.submit("b", "b1")
    assert skips(driver) == {"a": "window_runs", "b": "turn"}, "a is in the middle of its visit"
    assert waits_for(driver) == "window_runs"
    driver.succeed(driver.dispatches[0])
    assert skips(driver) == {"a": "", "b": "window_runs"}, "nobody is visited: the next one waits for the place"


def test_of_those_in_the_heap_the_next_one_waits_for_the_place() -> None:
    driver = Driver(make_policy(runs=1, quantum=100, weights={"c": 3}))
    costs = {"a": 100, "b": 250, "c": 250}
    driver.step(*(each for tenant, cost in costs.items() for each in driver.requests(tenant, ["r1", "r2"], cost=cost)))
    assert skips(driver) == {"a": "turn", "b": "turn", "c": "window_runs"}, "c can pay in round 1, a in 2, b in 3"


def test_the_window_has_no_room() -> None:
    driver = Driver(make_policy(runs=None, tokens=100, quantum=100))
    driver.submit("a", "a1", cost=60)
    driver.submit("b", "b1", cost=60)
    driver.submit("c", "c1", cost=10)
    assert skips(driver) == {"a": "", "b": "window_tokens", "c": "turn"}, "c would fit, and does not overtake"
    assert waits_for(driver) == "window_tokens"


def test_another_class_goes_first() -> None:
    driver = Driver(make_policy(runs=1, classes=("high", "low")))
    driver.submit("a", "a1", class_="low")
    driver.submit("b", "b1", class_="high")
    driver.submit("c", "c1", class_="low")
    assert skips(driver) == {"a": "", "b": "window_runs", "c": "class"}


def test_a_class_whose_turn_it_is_by_its_share_goes_first() -> None:
    policy = make_policy(runs=1, quantum=100)
    classes = (PriorityClass(name="high", weight=1), PriorityClass(name="low", weight=9))
    driver = Driver(replace(policy, between_classes="shares", classes=classes))
    driver.submit("a", "a1", "a2", class_="high")
    driver.submit("b", "b1", class_="low")
    assert driver.served() == ["a1"]
    assert skips(driver) == {"a": "class", "b": "window_runs"}


def test_no_class_goes_first_if_nobody_may_go() -> None:
    policy = make_policy(runs=1, quantum=100, rules={"a": TenantRules(max_runs_in_flight=1)})
    classes = (PriorityClass(name="high"), PriorityClass(name="low"))
    driver = Driver(replace(policy, between_classes="shares", classes=classes))
    driver.submit("a", "a1", "a2", class_="high")
    assert (skips(driver), waits_for(driver)) == ({"a": "cap_runs"}, "caps")


def test_who_is_at_its_cap_is_told_at_which() -> None:
    rules = {
        "runs": TenantRules(max_runs_in_flight=1, max_tokens_in_flight=10_000),
        "tokens": TenantRules(max_runs_in_flight=2, max_tokens_in_flight=150),
    }
    driver = Driver(make_policy(runs=9, rules=rules))
    driver.submit("runs", "r1", "r2")
    driver.submit("tokens", "r1", "r2")
    assert skips(driver) == {"runs": "cap_runs", "tokens": "cap_tokens"}
    assert waits_for(driver) == "caps"


def paused(*tenants: str) -> Policy:
    return make_policy(runs=1, rules={tenant: TenantRules(paused=True) for tenant in tenants})


def test_who_is_paused_is_told_so_and_the_shard_if_nobody_else_waits() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2")
    driver.submit("b", "b1")
    driver.submit("c", "c1")
    driver.set_policy(paused("a", "b"))
    assert skips(driver) == {"a": "paused", "b": "paused", "c": "window_runs"}
    driver.set_policy(paused("a", "b", "c"))
    driver.succeed(driver.dispatches[0])
    assert waits_for(driver) == "paused"
    rules = {"a": TenantRules(max_tokens_in_flight=10), **dict.fromkeys("bc", TenantRules(paused=True))}
    driver.set_policy(make_policy(runs=2, rules=rules))
    driver.submit("a", "a3")
    assert skips(driver) == {"a": "cap_tokens", "b": "paused", "c": "paused"}
    assert waits_for(driver) == "caps", "not everybody is paused"


def test_a_flow_is_delayed_if_all_it_has_waits_for_its_time() -> None:
    driver = Driver(make_policy(runs=2, classes=("high", "low")))
    driver.submit("a", "a1", not_before_ms=driver.now_ms + 50, class_="low")
    driver.submit("a", "a2", class_="high")
    assert {view.class_: view.skip for view in driver.shard.snapshot().flows} == {"high": "", "low": "delayed"}
    assert waits_for(driver) == "time"
    driver.submit("a", "a3", "a4", class_="low")
    assert skips(driver) == {"a": "window_runs"}, "what is queued counts, not what waits for its time"


@interpreted
def test_a_step_that_is_full_goes_on_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "MAX_DISPATCHES", 1)
    driver = Driver(make_policy(runs=9, quantum=200))
    driver.submit("a", "a1", "a2")
    driver.submit("b", "b1")
    loaded = Shard.load(0, 1, driver.shard.dump())
    assert (skips(driver), waits_for(driver)) == ({"a": "", "b": "visit"}, "step")
    assert loaded.snapshot() == driver.shard.snapshot()


LEASE_MS = 1_000


@pytest.fixture
def held() -> Driver:
    """One place, held by an attempt whose lease is that of the policy, and another run that waits for it."""
    leases = Leases(lease_ms=LEASE_MS, min_lease_ms=1, max_lease_ms=LONG_MS, backoff_ms=0)
    driver = Driver(make_policy(runs=1, leases=leases))
    driver.submit("a", "a1", "a2")
    return driver


def beat(driver: Driver, after_ms: int) -> None:
    driver.step(make_report(driver.dispatches[0], HEARTBEAT, 1), after_ms=after_ms)


def test_heartbeats_without_an_end_for_longer_than_a_lease_are_stuck(held: Driver) -> None:
    beat(held, after_ms=LEASE_MS)
    assert not stuck(held)
    beat(held, after_ms=1)
    assert stuck(held)
    held.succeed(held.dispatches[0])
    assert not stuck(held), "something has moved"


def test_silence_is_not_stuck_for_it_ends(held: Driver) -> None:
    for _ in range(3):
        held.step(after_ms=LEASE_MS)
        assert not stuck(held)
    assert len(held.dispatches) == 4


def test_a_longer_lease_in_flight_explains_more(held: Driver) -> None:
    held.step(make_report(held.dispatches[0], SUCCEEDED, 1), make_cancel("a", "a2"))
    held.submit("a", "long", lease_ms=5 * LEASE_MS)
    held.submit("a", "waits")
    held.step(after_ms=4 * LEASE_MS)
    assert not stuck(held)
    held.step(make_report(held.dispatches[-1], HEARTBEAT, 1), after_ms=LEASE_MS + 1)
    assert stuck(held)


def test_who_has_nothing_to_do_is_not_stuck(held: Driver) -> None:
    held.step(make_report(held.dispatches[0], SUCCEEDED, 1), make_cancel("a", "a2"))
    held.step(after_ms=LONG_MS // 2)
    assert (waits_for(held), stuck(held)) == ("work", False)
    held.submit("a", "later", not_before_ms=LONG_MS)
    held.step(after_ms=100)
    assert (waits_for(held), stuck(held)) == ("time", False)


def test_the_time_without_an_owner_is_not_stuck(held: Driver) -> None:
    held.take_over(after_ms=10 * LEASE_MS)
    assert not stuck(held)
    assert held.shard.snapshot().shard.moved_ms == held.now_ms
    beat(held, after_ms=LEASE_MS + 1)
    assert stuck(held)
