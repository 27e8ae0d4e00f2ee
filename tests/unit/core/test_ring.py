"""The ring's rules one by one, through the door: each order here can be worked out by hand.

Quantum 100 and weight 1 unless said: a visit earns 100 tokens. The window has one place, so that every dispatch
waits for the one before it, unless a test is about the window.
"""

from __future__ import annotations

import pytest

from streams.core.inputs import FAILED, HEARTBEAT, RETURNED
from streams.core.policy import Policy, TenantRules
from streams.core.ring import Ring
from tests.assertions import plain
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import Driver


def serial(quantum: int = 100, **weights: int) -> Policy:
    return make_policy(quantum=quantum, runs=1, weights=weights)


def queued(policy: Policy, **costs: list[int]) -> Driver:
    """Queue runs `a1, a2, ...` of tenant `a` and so on, while a run of another tenant holds the only place.

    That run was the visit of round 1, so the others begin with round 2.
    """
    driver = Driver(policy)
    driver.submit("blocker", "first", cost=1)
    requests = [
        request
        for tenant, tenant_costs in costs.items()
        for number, cost in enumerate(tenant_costs, 1)
        for request in driver.requests(tenant, [f"{tenant}{number}"], cost=cost)
    ]
    driver.step(*requests)
    return driver


def order(driver: Driver) -> list[str]:
    return driver.serve_all()[1:]


def test_a_visit_serves_while_the_deficit_covers_the_head() -> None:
    driver = queued(serial(), a=[60, 40, 1], b=[100, 100])
    assert order(driver) == ["a1", "a2", "b1", "a3", "b2"]


def test_what_a_visit_leaves_over_is_carried_to_the_next() -> None:
    driver = queued(serial(), a=[80, 80, 80], b=[80, 80, 80])
    assert order(driver) == ["a1", "b1", "a2", "b2", "a3", "b3"]
    assert [dispatch.deficit_before for dispatch in driver.dispatches[1:]] == [100, 100, 120, 120, 140, 140]


def test_a_head_dearer_than_a_quantum_waits_its_rounds_and_blocks_nobody() -> None:
    driver = queued(serial(), a=[350], b=[100] * 5)
    assert order(driver) == ["b1", "b2", "b3", "a1", "b4", "b5"]
    assert [dispatch.round for dispatch in driver.dispatches[1:]] == [2, 3, 4, 5, 5, 6]


def test_weights_multiply_the_quantum() -> None:
    driver = queued(serial(a=3), a=[100] * 4, b=[100] * 4)
    assert order(driver) == ["a1", "a2", "a3", "b1", "a4", "b2", "b3", "b4"]


def test_equal_flows_are_told_apart_by_their_place() -> None:
    driver = queued(serial(), c=[100, 100], a=[100, 100], b=[100, 100])
    assert order(driver) == ["c1", "a1", "b1", "c2", "a2", "b2"]


def test_a_million_quanta_are_one_visit() -> None:
    driver = queued(serial(quantum=1), a=[10**6])
    driver.succeed(driver.dispatches[0])
    assert driver.dispatches[-1].round == 1 + 10**6  # from round 2 on
    assert driver.dispatches[-1].deficit_after == 0


def test_a_returning_flow_is_served_in_the_current_round_if_the_cursor_has_not_passed_it() -> None:
    driver = Driver(serial())
    for tenant in ("a", "b", "c"):  # take the places
        driver.submit(tenant, f"{tenant}0", cost=1)
    driver.serve_all()
    driver.submit("b", "b1", cost=100)  # the cursor stands at b
    driver.submit("a", "a1", cost=100)  # passed: next round
    driver.submit("c", "c1", cost=100)  # not passed: this round
    assert driver.serve_all()[3:] == ["b1", "c1", "a1"]
    rounds = {dispatch.run_id: dispatch.round for dispatch in driver.dispatches}
    assert rounds["b1"] == rounds["c1"] == rounds["a1"] - 1


def test_leaving_and_returning_within_a_round_earns_no_second_quantum() -> None:
    driver = queued(serial(), a=[100], b=[100, 100])
    driver.succeed(driver.dispatches[0])  # a1 goes, and a's queue is empty
    driver.submit("a", "a2", cost=100)
    assert order(driver) == ["a1", "b1", "a2", "b2"]


def test_a_full_window_does_not_end_a_visit() -> None:
    """With one place every dispatch fills the window: a's visit goes on where it was, without a new quantum."""
    driver = queued(serial(), a=[50, 50, 50], b=[50])
    driver.succeed(driver.dispatches[0])  # a1 goes: half of a's quantum is left
    assert driver.rows["ring", "default"].visiting  # type: ignore[union-attr]
    assert driver.flow("a").deficit == 50
    assert order(driver) == ["a1", "a2", "b1", "a3"]


def test_credit_is_dropped_on_leaving() -> None:
    driver = queued(serial(), a=[10], b=[100])
    driver.succeed(driver.dispatches[0])
    assert driver.flow("a").deficit == 0  # 90 were left over


def test_credit_is_dropped_on_leaving_by_cancel() -> None:
    driver = queued(serial(), a=[350], b=[100] * 9)
    for index in range(3):
        driver.succeed(driver.dispatches[index])
    assert driver.flow("a").deficit == 300  # at its third visit, which serves nothing
    driver.step(make_cancel("a", "a1"))
    assert driver.flow("a").deficit == 0


def test_debt_is_kept_on_leaving_and_delays_the_next_run() -> None:
    driver = queued(serial(), a=[100], b=[100] * 8)
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1], tokens=450)
    assert driver.flow("a").deficit == -350
    driver.submit("a", "a2", cost=100)
    # b1 went in round 2. a earns in rounds 3, 4, ... and has paid its 350 and 100 for the run in round 7.
    assert order(driver) == ["a1", "b1", "b2", "b3", "b4", "b5", "a2", "b6", "b7", "b8"]


def test_debt_is_kept_when_what_is_queued_is_taken_back() -> None:
    driver = Driver(serial())
    driver.step(*driver.requests("a", ["a1", "a2"]), *driver.requests("b", ["b1", "b2"]))
    driver.succeed(driver.dispatches[0], tokens=450)  # b1 goes, in the same round
    driver.step(make_cancel("a", "a2"))
    assert (driver.flow("a").state, driver.flow("a").deficit) == ("idle", -350)


def test_debt_fades_by_a_quantum_for_each_round_that_passes() -> None:
    driver = queued(serial(), a=[100], b=[100] * 8)
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1], tokens=450)
    seen = []
    for index in range(2, 7):
        driver.succeed(driver.dispatches[index])
        seen.append(driver.flow("a").deficit)
    assert seen == [-250, -150, -50, 0, 0]


def test_credit_of_a_refund_made_while_nothing_is_queued_fades_too() -> None:
    driver = queued(make_policy(runs=2), a=[900], b=[100] * 20)
    driver.succeed(driver.dispatches[0])
    while driver.dispatches[-1].run_id != "a1":
        driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1], tokens=650)
    assert driver.flow("a").deficit == 250
    seen = []
    for _ in range(3):
        driver.succeed(driver.dispatches[-1])
        seen.append(driver.flow("a").deficit)
    assert seen == [150, 50, 0]


def test_refund_credit_is_dropped_at_the_next_leaving() -> None:
    driver = Driver(serial())
    driver.submit("a", "a1", cost=900)
    driver.succeed(driver.dispatches[0], tokens=100)
    assert driver.flow("a").deficit == 800
    driver.submit("a", "a2", cost=100)
    assert driver.flow("a").deficit == 0


def test_a_capped_flow_earns_nothing_until_it_has_room() -> None:
    driver = Driver(make_policy(runs=2, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", cost=100)
    driver.submit("b", *[f"b{number}" for number in range(10)], cost=100)
    assert driver.flow("a").state == "blocked"
    for _ in range(5):
        driver.succeed(driver.dispatches[-1])  # five rounds of b
    assert driver.flow("a").deficit == 0
    driver.succeed(driver.dispatches[0])
    assert (driver.dispatches[-1].run_id, driver.dispatches[-1].deficit_before) == ("a2", 100)


def test_a_visit_broken_off_by_the_cap_is_finished_without_a_second_quantum() -> None:
    driver = Driver(make_policy(runs=2, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", "a3", cost=50)
    assert (driver.flow("a").state, driver.flow("a").deficit) == ("blocked", 50)
    driver.succeed(driver.dispatches[0])
    assert (driver.dispatches[-1].run_id, driver.dispatches[-1].deficit_before) == ("a2", 50)
    driver.succeed(driver.dispatches[1])
    assert (driver.dispatches[-1].run_id, driver.dispatches[-1].deficit_before) == ("a3", 100)


def test_a_broken_off_visit_whose_rest_no_longer_suffices_costs_a_round() -> None:
    """The cap breaks the visit off at 20, then the dear head comes back: the next visit still earns nothing."""
    driver = Driver(make_policy(runs=3, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.step(*driver.requests("a", ["dear"], cost=80), *driver.requests("a", ["cheap"], cost=20))
    driver.submit("b", *[f"b{number}" for number in range(9)], cost=100)
    assert driver.flow_row("a").half_visit
    driver.step(make_report(driver.dispatches[0], FAILED, 80, retryable=True))
    assert (driver.dispatches[-1].run_id, driver.dispatches[-1].round) == ("b2", 4)  # a's turn was before it
    driver.succeed(driver.dispatches[-1])
    dispatch = driver.dispatches[-1]
    assert (dispatch.run_id, dispatch.attempt, dispatch.deficit_before) == ("dear", 2, 120)
    assert dispatch.round == 5


def test_a_cap_in_tokens_holds_the_head_back_and_nobody_else() -> None:
    rules = {"a": TenantRules(max_tokens_in_flight=150)}
    driver = Driver(make_policy(quantum=1_000, runs=9, rules=rules))
    driver.submit("a", "a1", "a2", cost=100)
    driver.submit("b", "b1", cost=100)
    assert driver.served() == ["a1", "b1"]
    assert driver.flow("a").state == "blocked"


def test_a_run_bigger_than_its_tenants_cap_goes_alone() -> None:
    rules = {"a": TenantRules(max_tokens_in_flight=50)}
    driver = Driver(make_policy(quantum=1_000, runs=9, rules=rules))
    driver.submit("a", "big", "next", cost=100)
    assert driver.served() == ["big"]
    assert driver.serve_all() == ["big", "next"]


def test_the_head_that_does_not_fit_the_token_window_is_not_overtaken() -> None:
    driver = Driver(make_policy(quantum=1_000, runs=9, tokens=100))
    driver.submit("a", "a1", cost=60)
    driver.submit("b", "b1", cost=60)
    driver.submit("c", "c1", cost=10)
    assert driver.served() == ["a1"]
    assert driver.serve_all() == ["a1", "b1", "c1"]


def test_a_run_bigger_than_the_window_goes_alone() -> None:
    driver = Driver(make_policy(quantum=1_000, runs=9, tokens=100))
    driver.submit("a", "a1", cost=60)
    driver.submit("b", "huge", cost=500)
    driver.submit("c", "c1", cost=10)
    assert driver.served() == ["a1"]
    driver.succeed(driver.dispatches[0])
    assert driver.served() == ["a1", "huge"]
    driver.succeed(driver.dispatches[1])
    assert driver.served() == ["a1", "huge", "c1"]


def test_a_charge_in_the_middle_of_a_visit_ends_it() -> None:
    driver = Driver(make_policy(runs=2))
    driver.step(
        *driver.requests("a", ["a1", "a2"], cost=40),
        *driver.requests("a", ["a3"], cost=20),
        *driver.requests("b", ["b1", "b2", "b3"], cost=10),
    )
    assert driver.flow("a").deficit == 20
    assert ring_of(driver).record.visiting  # a3 goes as soon as there is a place
    driver.succeed(driver.dispatches[0], tokens=140)
    assert driver.dispatches[-1].run_id == "b1"
    assert driver.flow("a").deficit == -80


def test_a_returned_run_goes_back_to_its_place_before_its_successors() -> None:
    driver = Driver(serial())
    driver.submit("a", "a1", "a2", cost=100)
    driver.step(make_report(driver.dispatches[0], RETURNED))
    assert driver.serve_all() == ["a1", "a1", "a2"]


def test_classes_are_served_strictly_in_their_order() -> None:
    driver = Driver(make_policy(runs=1, classes=("high", "low")))
    driver.submit("a", "blocker", class_="low", cost=1)
    driver.submit("a", "low1", "low2", class_="low")
    driver.submit("b", "high1", "high2", class_="high")
    assert driver.serve_all() == ["blocker", "high1", "high2", "low1", "low2"]


def test_a_visit_in_a_lower_class_goes_on_after_the_higher_class() -> None:
    driver = Driver(make_policy(quantum=100, runs=1, classes=("high", "low")))
    driver.step(
        *driver.requests("a", ["a1", "a2", "a3"], class_="low", cost=50),
        *driver.requests("b", ["b1"], class_="low", cost=50),
    )
    driver.submit("c", "urgent", class_="high", cost=50)
    assert driver.serve_all() == ["a1", "urgent", "a2", "b1", "a3"]


def test_a_higher_class_that_waits_for_tokens_holds_the_lower_one() -> None:
    driver = Driver(make_policy(quantum=1_000, runs=9, tokens=100, classes=("high", "low")))
    driver.submit("a", "a1", class_="low", cost=60)
    driver.submit("b", "b1", class_="high", cost=60)
    driver.submit("a", "a2", class_="low", cost=10)
    assert driver.served() == ["a1"]


def test_rescheduling_fills_no_memory() -> None:
    """Each charge puts the next visit off and leaves a stale entry in the heap."""
    driver = Driver(make_policy(quantum=10, runs=1))
    driver.step(
        *driver.requests("a", ["a1", "a2"], cost=10),
        *driver.requests("b", ["b1"], cost=10),
        *driver.requests("gone", ["g1"], cost=10),
    )
    driver.step(make_cancel("gone", "g1"))
    ring = driver.shard._state.rings["default"]
    largest = 0
    for tokens in range(20, 2_000, 10):
        driver.step(make_report(driver.dispatches[0], HEARTBEAT, tokens))
        largest = max(largest, len(ring._heap))
    assert largest <= 2 * ring.active + 64 + 1
    assert driver.serve_all() == ["a1", "b1", "a2"]


def test_a_blocked_flow_leaves_when_its_queue_is_cancelled() -> None:
    driver = Driver(make_policy(rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", cost=40)
    assert (driver.flow("a").state, driver.flow("a").deficit) == ("blocked", 60)
    driver.step(make_cancel("a", "a2"))
    assert (driver.flow("a").state, driver.flow("a").deficit) == ("idle", 0)
    assert not driver.flow_row("a").half_visit


@pytest.mark.parametrize("quantum", [1, 10, 100, 1_000])
def test_totals_follow_the_weights_whatever_the_quantum(quantum: int) -> None:
    driver = queued(serial(quantum, a=1, b=2, c=5), a=[20] * 60, b=[40] * 60, c=[50] * 110)
    for index in range(200):
        driver.succeed(driver.dispatches[index])
    per_weight = [driver.flow(tenant).actual / weight for tenant, weight in (("a", 1), ("b", 2), ("c", 5))]
    assert max(per_weight) - min(per_weight) <= quantum + 50 + 50


def ring_of(driver: Driver, class_: str = "default") -> Ring:
    return driver.shard._state.rings[class_]


def test_the_blocked_are_counted_through_a_takeover_and_all_ways_out() -> None:
    driver = Driver(make_policy(runs=9, rules={tenant: TenantRules(max_runs_in_flight=1) for tenant in "abc"}))
    for tenant in "abc":
        driver.submit(tenant, f"{tenant}1", f"{tenant}2")
    assert (ring_of(driver).active, ring_of(driver).blocked) == (0, 3)
    driver.take_over()
    assert (ring_of(driver).active, ring_of(driver).blocked) == (0, 3)
    driver.step(make_cancel("a", "a2"))
    assert ring_of(driver).blocked == 2
    driver.set_policy(make_policy(runs=3, rules={"c": TenantRules(max_runs_in_flight=1)}))
    assert (ring_of(driver).active, ring_of(driver).blocked) == (1, 1)
    driver.take_over()
    assert (ring_of(driver).active, ring_of(driver).blocked) == (1, 1)


def test_a_peek_sees_the_next_head_and_begins_no_visit() -> None:
    driver = queued(serial(), a=[350], b=[70, 40, 30])
    ring = ring_of(driver)
    before = plain(ring.record)
    assert ring.peek() == 70  # b's turn comes before a can afford its head
    assert (ring.current, plain(ring.record)) == (None, before)
    driver.step(make_cancel("b", "b1"))  # its entry in the heap stays behind
    assert ring.peek() == 40
    driver.step(make_cancel("b", "b2"), make_cancel("b", "b3"))
    assert ring.peek() == 350
    driver.step(make_cancel("a", "a1"))
    assert ring.peek() is None


def test_a_peek_in_the_middle_of_a_visit_sees_the_head_of_who_is_visited() -> None:
    driver = queued(serial(), a=[50, 20], b=[10])
    driver.succeed(driver.dispatches[0])
    assert ring_of(driver).peek() == 20


def test_who_is_forgotten_has_no_place_any_more_and_leaves_nobody_else_his() -> None:
    driver = queued(serial(), a=[50], b=[70], c=[10])
    driver.step(make_cancel("a", "a1"), make_cancel("b", "b1"))  # their entries in the heap stay behind
    ring = ring_of(driver)
    places = [flow.place for flow in ring.flows.values()]
    for flow in [flow for flow in ring.flows.values() if flow.tenant in "ab"]:
        ring.forget(flow)
    assert [flow.tenant for flow in ring.flows.values()] == ["blocker", "c"]
    assert ring.peek() == 10
    visited = ring.next()
    assert visited is not None
    assert visited.tenant == "c"
    assert ring.record.next_place == len(places)


def test_nobody_is_next_if_nobody_may_go() -> None:
    driver = queued(serial(), a=[50])
    driver.step(make_cancel("a", "a1"))  # its entry in the heap stays behind
    assert ring_of(driver).next() is None


def test_a_broken_off_visit_that_has_been_passed_over_is_over() -> None:
    """The cap breaks a's visit off, then its head is too dear: the rounds that pass are booked when its bill comes."""
    driver = Driver(make_policy(runs=3, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.step(*driver.requests("a", ["dear"], cost=80), *driver.requests("a", ["cheap"], cost=20))
    driver.submit("b", *[f"b{number}" for number in range(9)], cost=100)
    driver.step(make_report(driver.dispatches[0], FAILED, 700, retryable=True))
    assert (driver.flow_row("a").half_visit, driver.flow("a").deficit) == (True, -600)
    for _ in range(3):
        driver.succeed(driver.dispatches[-1])
    driver.set_policy(make_policy(runs=3))  # the weight is the same; the cap is gone
    before = driver.flow("a").deficit
    driver.set_policy(make_policy(runs=3, weights={"a": 2}))
    assert driver.flow("a").deficit == before
    assert not driver.flow_row("a").half_visit


def test_the_entries_of_who_is_forgotten_are_swept_with_the_others() -> None:
    driver = queued(serial(), a=[50], b=[70, 80])
    ring = ring_of(driver)
    driver.step(make_cancel("a", "a1"))
    ring.forget(next(flow for flow in ring.flows.values() if flow.tenant == "a"))
    ring._sweep()
    assert len(ring._heap) == 1
    assert ring.next() is not None
