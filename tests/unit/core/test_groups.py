"""Groups, rule by rule: tenants that share one weight. Quantum 120, so that two, three and four can divide it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core.groups import Group
from streams.core.inputs import FAILED
from streams.core.policy import Policy, TenantRules
from streams.core.records import FlowState
from tests.assertions import assert_drained
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import Driver

QUANTUM = 120
ROUND = 1_000  # tokens: a head that is far away


def grouped(*, group_weight: int = 1, runs: int = 1, caps: int | None = None, **weights: int) -> Policy:
    """Tenants whose names begin with `g` are in the group, with their own weights; the others have a weight each."""
    rules = {
        tenant: TenantRules(
            weight=weight,
            group="acme" if tenant.startswith("g") else None,
            max_runs_in_flight=caps if tenant.startswith("g") else None,
        )
        for tenant, weight in weights.items()
    }
    return replace(make_policy(quantum=QUANTUM, runs=runs, rules=rules), groups={"acme": group_weight})


def held_back(policy: Policy) -> Driver:
    """Return a driver whose window is full, so that what comes in waits."""
    driver = Driver(policy)
    driver.submit("blocker", *[f"first{place}" for place in range(policy.window.runs or 1)], cost=1)
    return driver


def take_places(driver: Driver, *tenants: str) -> None:
    """Make tenants known; they have nothing queued."""
    requests = [request for tenant in tenants for request in driver.requests(tenant, ["gone"])]
    driver.step(*requests, *(make_cancel(request.tenant, request.run_id) for request in requests))


def rates(driver: Driver) -> dict[str, int]:
    """Return what each flow earns, tokens a round."""
    return {flow.tenant: flow.rate for flow in driver.shard._state.rings["default"].flows.values()}


def rounds(driver: Driver, count: int) -> None:
    """Let rounds pass: a tenant outside the group is served one quantum in each."""
    for _ in range(count):
        driver.succeed(driver.dispatches[-1])


def assert_drained_after_all(driver: Driver) -> None:
    driver.serve_all()
    assert_drained(driver.shard)


def test_the_active_members_divide_the_group_s_quantum_by_their_own_weights() -> None:
    driver = held_back(grouped(g1=1, g2=2, g3=1, o=1))
    for tenant in ("g1", "g2", "o"):
        driver.submit(tenant, f"{tenant}.1", cost=ROUND)
    assert rates(driver) == {"blocker": 120, "g1": 40, "g2": 80, "o": 120}
    driver.submit("g3", "g3.1", cost=ROUND)
    assert rates(driver) == {"blocker": 120, "g1": 30, "g2": 60, "o": 120, "g3": 30}
    driver.step(make_cancel("g2", "g2.1"))
    assert rates(driver) == {"blocker": 120, "g1": 60, "g2": 0, "o": 120, "g3": 60}


def test_a_group_has_its_weight_in_each_class() -> None:
    policy = grouped(group_weight=3, g1=1, g2=1)
    policy = replace(policy, classes=make_policy(classes=("high", "low")).classes)
    driver = Driver(policy)
    driver.submit("x", "first", class_="high", cost=1)
    driver.submit("g1", "a", class_="high", cost=ROUND)
    driver.submit("g1", "b", class_="low", cost=ROUND)
    driver.submit("g2", "c", class_="low", cost=ROUND)
    rings = driver.shard._state.rings
    assert [flow.rate for flow in rings["high"].flows.values()] == [120, 360]
    assert [flow.rate for flow in rings["low"].flows.values()] == [180, 180]


def test_a_share_is_at_least_a_token_and_rounds_down() -> None:
    driver = held_back(grouped(g1=1, g2=1_000, g3=1_000))
    driver.submit("g1", "a", cost=ROUND)
    driver.submit("g2", "b", cost=ROUND)
    assert (rates(driver)["g1"], rates(driver)["g2"]) == (1, 119)
    driver.submit("g3", "c", cost=ROUND)  # the smallest share can't become smaller
    assert (rates(driver)["g1"], rates(driver)["g2"], rates(driver)["g3"]) == (1, 59, 59)


@pytest.mark.parametrize(("known", "extra", "extra_of_three"), [(True, -60, -40), (False, 0, 0)])
def test_who_comes_earns_nothing_in_the_round_under_way_and_the_others_what_they_would_have(
    known: bool, extra: int, extra_of_three: int
) -> None:
    """Who returns would be visited yet, so what that visit gives is taken off; a newcomer would not."""
    driver = held_back(grouped(o=1, g1=1, g2=1, g3=1))
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    driver.submit("g1", "g1.1", cost=5 * ROUND)
    if known:
        take_places(driver, "g2", "g3")
    rounds(driver, 3)  # the cursor stands at o: it has not come past g1 in this round
    before = driver.flow("g1").deficit
    effects = driver.submit("g2", "g2.1", cost=5 * ROUND)
    assert ("flow", "default", "g1") in effects.changed
    assert (driver.flow_row("g1").extra, driver.flow_row("g2").extra) == (60, extra)
    driver.submit("g3", "g3.1", cost=5 * ROUND)
    extras = [driver.flow_row(tenant).extra for tenant in ("g1", "g2", "g3")]
    assert extras == [80, extra_of_three, extra_of_three]
    rounds(driver, 1)
    assert driver.flow("g1").deficit == before + 120
    assert (driver.flow("g2").deficit, driver.flow("g3").deficit) == (0, 0)
    rounds(driver, 2)
    assert driver.flow("g1").deficit == before + 120 + 2 * 40
    assert (driver.flow("g2").deficit, driver.flow("g3").deficit) == (80, 80)


def test_who_leaves_makes_the_others_earn_more_from_the_next_round_on() -> None:
    driver = held_back(grouped(o=1, g1=1, g2=1))
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    driver.submit("g1", "g1.1", cost=5 * ROUND)
    driver.submit("g2", "g2.1", cost=5 * ROUND)
    rounds(driver, 4)
    before = driver.flow("g1").deficit
    driver.step(make_cancel("g2", "g2.1"))
    assert (driver.flow_row("g1").extra, rates(driver)["g1"]) == (-60, 120)
    assert driver.flow("g1").deficit == before
    rounds(driver, 1)
    assert driver.flow("g1").deficit == before + 60
    rounds(driver, 2)
    assert driver.flow("g1").deficit == before + 60 + 240


def test_who_has_been_visited_in_the_round_has_nothing_left_to_earn_in_it() -> None:
    driver = held_back(grouped(g1=1, o=1, g2=1))
    driver.submit("g1", "g1.1", cost=5 * ROUND)
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    rounds(driver, 3)  # the cursor stands at o, after g1
    before = driver.flow("g1").deficit
    driver.submit("g2", "g2.1", cost=5 * ROUND)
    assert driver.flow_row("g1").extra == 0
    rounds(driver, 1)
    assert driver.flow("g1").deficit == before + 60


def test_the_flow_in_the_middle_of_its_visit_keeps_what_it_has() -> None:
    driver = held_back(grouped(g1=1, g2=1))
    driver.submit("g1", "g1.1", "g1.2", "g1.3", cost=40)
    driver.succeed(driver.dispatches[-1])
    assert driver.flow("g1").deficit == 80
    driver.submit("g2", "g2.1", cost=40)
    assert (driver.flow("g1").deficit, rates(driver)["g1"]) == (80, 60)
    assert driver.serve_all()[1:] == ["g1.1", "g1.2", "g1.3", "g2.1"]


def test_what_an_idle_member_owes_stands_still() -> None:
    """The active ones have all of the group's quantum: if debts faded beside them, it would earn more than that."""
    driver = held_back(grouped(o=1, g1=1, g2=1))
    driver.submit("g1", "g1.1", cost=10)
    driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1], tokens=500)
    balance = driver.flow("g1").deficit
    assert (driver.flow("g1").state, balance) == ("idle", -490)
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    rounds(driver, 6)
    assert driver.flow("g1").deficit == balance
    driver.submit("g1", "g1.2", cost=10)
    rounds(driver, 4)
    assert driver.flow("g1").deficit == balance + 4 * 120
    rounds(driver, 2)
    assert "g1.2" in driver.served()


def test_a_blocked_member_leaves_its_part_to_the_others_and_comes_back_in_the_next_round() -> None:
    driver = Driver(grouped(runs=3, caps=1, o=1, g1=1, g2=1))
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    driver.submit("g1", "g1.1", "g1.2", cost=60)
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1])
    dispatch = next(each for each in driver.dispatches if each.run_id == "g1.1")
    assert driver.flow("g1").state == "blocked"
    driver.submit("g2", "g2.1", cost=5 * ROUND)
    assert (rates(driver)["g1"], rates(driver)["g2"]) == (0, 120)
    driver.take_over()
    assert (rates(driver)["g1"], rates(driver)["g2"]) == (0, 120)
    driver.succeed(dispatch)
    assert (rates(driver)["g1"], rates(driver)["g2"]) == (60, 60)


def test_a_visit_that_the_cap_broke_off_is_not_made_up_for() -> None:
    """It earns nothing in the round under way, so a change of the group has no quantum to keep for it."""
    driver = Driver(grouped(runs=4, caps=1, g1=1, g2=1))
    driver.submit("g1", "g1.1", "g1.2", cost=50)
    flow = driver.flow_row("g1")
    assert (flow.state, flow.half_visit, flow.deficit) == (FlowState.BLOCKED, True, 70)
    driver.submit("g2", "g2.1", "g2.2", cost=50)
    driver.step(make_report(driver.dispatches[0], FAILED, 100, retryable=True))
    assert [(each.run_id, each.round, each.deficit_before) for each in driver.dispatches] == [
        ("g1.1", 2, 120),
        ("g2.1", 3, 120),
        ("g1.1", 5, 140),  # 20 were left; its visit in round 4 earns nothing, for it had that quantum before
    ]
    assert_drained_after_all(driver)


def test_shares_and_extras_survive_a_takeover() -> None:
    driver = held_back(grouped(o=1, g1=1, g2=2))
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    driver.submit("g1", "g1.1", cost=5 * ROUND)
    rounds(driver, 3)
    driver.submit("g2", "g2.1", cost=5 * ROUND)
    before, extra = rates(driver), driver.flow_row("g1").extra
    driver.take_over()
    assert rates(driver) == before == {"blocker": 120, "o": 120, "g1": 40, "g2": 80}
    assert driver.flow_row("g1").extra == extra == 80
    assert_drained_after_all(driver)


def test_a_policy_moves_tenants_between_groups_and_binds_at_the_next_visit() -> None:
    driver = held_back(grouped(o=1, g1=1, g2=1))
    driver.submit("o", *[f"o{number}" for number in range(20)], cost=QUANTUM)
    driver.submit("g1", "g1.1", cost=5 * ROUND)
    take_places(driver, "g2")
    rounds(driver, 3)
    driver.submit("g2", "g2.1", cost=5 * ROUND)
    assert driver.flow_row("g2").extra == -60
    policy = grouped(group_weight=2, o=1, g1=1, g2=1)
    rules = {**policy.tenants, "o": TenantRules(group="acme"), "g2": TenantRules(weight=4)}
    driver.set_policy(replace(policy, tenants=rules))
    assert rates(driver) == {"blocker": 120, "o": 120, "g1": 120, "g2": 480}
    assert (driver.flow_row("g1").extra, driver.flow_row("g2").extra) == (0, 0)
    driver.set_policy(replace(policy, tenants={}))
    assert rates(driver) == {"blocker": 120, "o": 120, "g1": 120, "g2": 120}


def test_a_policy_measures_anew_what_a_blocked_member_holds() -> None:
    driver = Driver(grouped(group_weight=8, runs=3, caps=1, g1=1))
    driver.submit("g1", "g1.1", "g1.2", cost=10)
    assert (driver.flow("g1").state, driver.flow("g1").deficit) == ("blocked", 8 * 120 - 10)
    driver.set_policy(grouped(group_weight=1, runs=3, caps=1, g1=1))
    assert driver.flow("g1").deficit == 8 * 120 - 10


@pytest.mark.parametrize("size", [1, 3, 7])
def test_what_a_group_earns_in_a_round_is_never_more_than_its_weight_gives(size: int) -> None:
    """Members come and go between any two dispatches; each round's income is summed up over all of them."""
    names = [f"g{number}" for number in range(size)]
    policy = grouped(o=1, **dict.fromkeys(names, 1))
    driver = held_back(policy)
    driver.submit("o", *[f"o{number}" for number in range(200)], cost=40)
    spent = 0
    for step in range(150):
        name = names[step * 5 % size]
        view = {flow.tenant: flow for flow in driver.shard.snapshot().flows}
        if name not in view or view[name].queued_runs == 0:
            driver.submit(name, f"{name}.{step}", cost=QUANTUM)
        driver.succeed(driver.dispatches[-1])
        ring = driver.shard._state.rings["default"]
        spent = sum(flow.charged + driver.flow(flow.tenant).deficit for flow in ring.flows.values() if flow.group)
        assert spent <= QUANTUM * ring.record.round
    assert spent > QUANTUM * ring.record.round // 2


def test_a_group_counts_who_is_active() -> None:
    driver = held_back(grouped(g1=3, g2=1))
    driver.submit("g1", "a", cost=ROUND)
    driver.submit("g2", "b", cost=ROUND)
    group = driver.shard._state.rings["default"].groups["acme"]
    assert isinstance(group, Group)
    assert (group.weights, sorted(group.active)) == (4, [1, 2])
    driver.step(make_cancel("g1", "a"))
    assert (group.weights, sorted(group.active)) == (1, [2])
