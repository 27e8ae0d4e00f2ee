"""What is said of one run: why it waits, what stands before it, and what its estimate rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import dispatching
from streams.core.inputs import HEARTBEAT
from streams.core.policy import Estimates, PriorityClass, TenantRules
from streams.core.run_view import AheadView, RunView
from tests.builders import make_policy, make_report
from tests.drivers import Driver


def seen(driver: Driver, tenant: str, run_id: str) -> RunView:
    view = driver.shard.view_run(tenant, run_id)
    assert view is not None
    return view


def wait(driver: Driver, tenant: str, run_id: str) -> str:
    return seen(driver, tenant, run_id).wait


def ahead(driver: Driver, tenant: str, run_id: str) -> AheadView:
    view = driver.shard.view_ahead(tenant, run_id)
    assert view is not None
    return view


def test_a_run_that_is_not_known_is_not_seen() -> None:
    driver = Driver(make_policy())
    assert driver.shard.view_run("a", "a1") is None
    driver.submit("a", "a1")
    assert driver.shard.view_run("a", "a2") is None
    driver.serve_all()
    assert driver.shard.view_run("a", "a1") is None
    assert driver.shard.view_ahead("a", "a1") is None


def test_a_run_in_flight_waits_for_nothing() -> None:
    driver = Driver(make_policy(runs=3, quantum=100))
    driver.submit("a", "a1", cost=40, submitted_ms=7)
    view = seen(driver, "a", "a1")
    assert (view.state, view.wait, view.attempt, view.estimate) == ("in_flight", "", 1, 40)
    assert (view.deficit, view.round, view.submitted_ms) == (0, 1, 7), "it has left the ring, and its credit with it"
    assert (view.flight_runs, view.flight_tokens, view.shard_flight_runs, view.shard_flight_tokens) == (1, 40, 1, 40)
    assert (view.window_runs, view.window_tokens) == (3, None)
    assert driver.shard.view_ahead("a", "a1") is None


def test_its_own_earlier_runs_stand_before_it() -> None:
    driver = Driver(make_policy(runs=1, quantum=100))
    driver.submit("a", "a1", "a2", "a3", cost=50)
    driver.submit("b", "b1", cost=70)
    assert [wait(driver, *run) for run in (("a", "a2"), ("a", "a3"), ("b", "b1"))] == ["window_runs", "own", "turn"]
    assert ahead(driver, "a", "a3") == AheadView(
        runs=1, tokens=50, others_runs=1, others_tokens=70, before_runs=0, before_tokens=0, rounds=1
    )


def test_the_classes_before_its_own_are_counted_apart() -> None:
    driver = Driver(make_policy(runs=1, classes=("high", "low")))
    driver.submit("a", "a1", "a2", class_="high", cost=10)
    driver.submit("b", "b1", class_="low", cost=20)
    driver.submit("c", "c1", "c2", class_="low", cost=30)
    assert wait(driver, "b", "b1") == "class"
    view = ahead(driver, "b", "b1")
    assert (view.before_runs, view.before_tokens, view.others_runs, view.others_tokens) == (1, 10, 2, 60)
    assert ahead(driver, "a", "a2").before_runs == 0


def test_what_holds_the_whole_flow_back_goes_before_the_place_in_it() -> None:
    driver = Driver(make_policy(runs=9, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", "a3")
    assert [wait(driver, "a", run_id) for run_id in ("a2", "a3")] == ["cap_runs", "cap_runs"]
    assert ahead(driver, "a", "a3").rounds is None, "a blocked flow earns nothing"
    assert seen(driver, "a", "a3").rules.max_runs_in_flight == 1


def test_a_paused_tenant_is_paused_whatever_its_run_waits_for() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("z", "z1")
    driver.submit("a", "a1")
    driver.submit("a", "a2", not_before_ms=driver.now_ms + 1_000)
    assert wait(driver, "a", "a2") == "delayed"
    driver.set_policy(make_policy(runs=1, rules={"a": TenantRules(paused=True)}))
    assert [wait(driver, "a", run_id) for run_id in ("a1", "a2")] == ["paused", "paused"]


def test_a_delayed_run_waits_for_its_time() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("z", "z1")
    driver.submit("a", "a1", not_before_ms=driver.now_ms + 5_000)
    view = seen(driver, "a", "a1")
    assert (view.state, view.wait, view.ready_ms) == ("delayed", "delayed", driver.now_ms + 5_000)
    assert ahead(driver, "a", "a1").rounds is None
    driver.step(after_ms=5_000)
    assert wait(driver, "a", "a1") == "window_runs"


def test_an_overdue_run_waits_to_be_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("z", "z1")
    driver.submit("a", "a1", "a2", deadline_ms=driver.now_ms + 1_000)
    monkeypatch.setattr("streams.core.expiry.MAX_ENDED", 1)
    driver.step(after_ms=1_000)
    assert driver.shard.view_run("a", "a1") is None
    assert wait(driver, "a", "a2") == "overdue"


def test_a_full_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "MAX_DISPATCHES", 1)
    driver = Driver(make_policy(runs=9))
    driver.submit("a", "a1", "a2", cost=1)
    assert wait(driver, "a", "a2") == "visit"
    assert ahead(driver, "a", "a2").rounds == 0, "its visit is under way"


def test_the_rounds_of_a_head_are_those_of_the_snapshot() -> None:
    driver = Driver(make_policy(runs=1, quantum=100))
    driver.submit("a", "a1", cost=100)
    driver.submit("b", "b1", cost=730)
    assert ahead(driver, "b", "b1").rounds == driver.flow("b").rounds_to_go == 8


@given(
    costs=st.lists(st.integers(min_value=1, max_value=700), min_size=1, max_size=8),
    weight=st.integers(min_value=1, max_value=5),
    others=st.integers(min_value=0, max_value=4),
)
def test_it_goes_in_the_round_foretold_if_nothing_else_comes(costs: list[int], weight: int, others: int) -> None:
    driver = Driver(make_policy(runs=1, quantum=100, weights={"a": weight}))
    driver.submit("z", *[f"z{number}" for number in range(30)], cost=100)
    driver.step(*(each for run_id, cost in enumerate(costs) for each in driver.requests("a", [str(run_id)], cost=cost)))
    for number in range(others):
        driver.submit(f"o{number}", "o1", "o2", cost=150)
    last = str(len(costs) - 1)
    view = seen(driver, "a", last)
    rounds = ahead(driver, "a", last).rounds
    assert rounds is not None
    driver.serve_all()
    (served,) = [each for each in driver.dispatches if (each.tenant, each.run_id) == ("a", last)]
    assert served.round == view.round + rounds


def test_a_visit_that_the_cap_broke_off_earns_nothing_the_next_time() -> None:
    driver = Driver(make_policy(runs=2, quantum=100, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", "a3", cost=40)
    driver.submit("z", "z1", "z2", cost=100)
    first, second = driver.dispatches
    driver.set_policy(make_policy(runs=2, quantum=100))  # the cap is gone while the window is full
    assert wait(driver, "a", "a2") in {"turn", "window_runs"}
    assert driver.flow("a").deficit == 60
    foretold = {
        run_id: seen(driver, "a", run_id).round + (ahead(driver, "a", run_id).rounds or 0) for run_id in ("a2",)
    }
    foretold["a3"] = seen(driver, "a", "a3").round + (ahead(driver, "a", "a3").rounds or 0)
    driver.succeed(first, second)
    driver.serve_all()
    assert {each.run_id: each.round for each in driver.dispatches if each.run_id in foretold} == foretold


def test_a_change_of_policy_shows_at_once() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2")
    driver.set_policy(make_policy(runs=1, rules={"a": TenantRules(weight=9, plan="gold")}))
    assert seen(driver, "a", "a2").rules == TenantRules(weight=9, plan="gold")


def test_a_run_that_is_heard_of_is_still_in_flight() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "a1")
    driver.step(make_report(driver.dispatches[0], HEARTBEAT))
    assert seen(driver, "a", "a1").state == "in_flight"


def test_what_an_estimate_rests_on() -> None:
    policy = replace(make_policy(default_estimate=500), estimates=Estimates(prior_runs=2, min_charge=3))
    driver = Driver(policy)
    shard = driver.shard
    nothing = shard.view_cost("a", "sum", "default")
    assert (nothing.count, nothing.mean, nothing.prior, nothing.prior_from) == (0, None, 500, "class")
    assert (nothing.source, nothing.prior_runs, nothing.min_charge) == ("history", 2, 3)
    driver.submit("a", "a1", workflow="sum")
    driver.succeed(driver.dispatches[0], tokens=80)
    own = shard.view_cost("a", "sum", "default")
    assert (own.count, own.mean, own.prior, own.prior_from) == (1, 80, 80, "workflow")
    other = shard.view_cost("b", "sum", "default")
    assert (other.count, other.mean, other.prior, other.prior_from) == (0, None, 80, "workflow")
    unknown = shard.view_cost("a", "draw", "default")
    assert (unknown.count, unknown.mean, unknown.prior, unknown.prior_from) == (0, None, 80, "tenant")


def test_the_default_is_that_of_the_class() -> None:
    classes = (PriorityClass(name="high"), PriorityClass(name="low", default_estimate=77))
    driver = Driver(replace(make_policy(), classes=classes))
    assert driver.shard.view_cost("a", "sum", "low").prior == 77
