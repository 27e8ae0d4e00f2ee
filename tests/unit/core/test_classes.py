"""The rules between classes one by one, through the door: each order here can be worked out by hand.

A tenant is named like its class. Runs cost 100 tokens unless said, and the window has one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.core import classes
from streams.core.classes import UNIT, Turns
from streams.core.inputs import FAILED, HEARTBEAT, SUCCEEDED
from streams.core.invariants import InvariantBroken, check
from streams.core.policy import Policy, PriorityClass, TenantRules
from streams.core.records import RingRecord, ShardRecord
from streams.core.ring import Ring
from streams.core.state import State
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.compiled import interpreted
from tests.drivers import Driver


def by_weight(*, runs: int | None = 1, tokens: int | None = None, **weights: int) -> Policy:
    return replace(
        make_policy(quantum=10_000, runs=runs, tokens=tokens),
        between_classes="shares",
        classes=tuple(PriorityClass(name=name, weight=weight) for name, weight in weights.items()),
    )


def in_order(*, runs: int = 1, **minimums: int) -> Policy:
    return replace(
        make_policy(quantum=10_000, runs=runs),
        classes=tuple(PriorityClass(name=name, min_share=percent) for name, percent in minimums.items()),
    )


def pausing(policy: Policy, *tenants: str) -> Policy:
    return replace(policy, tenants={tenant: TenantRules(paused=True) for tenant in tenants})


def queue(driver: Driver, **costs: list[int]) -> None:
    """Submit runs `high1, high2, ...` and so on in one step."""
    counts = {name: len([run for run in driver.served() if run.startswith(name)]) for name in costs}
    driver.step(
        *(
            request
            for name, class_costs in costs.items()
            for number, cost in enumerate(class_costs, counts[name] + 1)
            for request in driver.requests(name, [f"{name}{number}"], cost=cost, class_=name)
        )
    )


def serve(driver: Driver, runs: int) -> list[str]:
    """Finish runs at their estimate, one by one; return the classes of the `runs` that are dispatched next."""
    already = len(driver.dispatches)
    while len(driver.dispatches) < already + runs:
        driver.succeed(driver.dispatches[-1])
    return [dispatch.class_ for dispatch in driver.dispatches[already:]]


def letters(driver: Driver) -> str:
    """Serve everything; return the first letter of the class of each run, in order."""
    return "".join(run[0] for run in driver.serve_all())


def clock(driver: Driver) -> int:
    row = driver.rows["shard",]
    assert isinstance(row, ShardRecord)
    return row.clock


def tag(driver: Driver, class_: str) -> int:
    row = driver.rows["ring", class_]
    assert isinstance(row, RingRecord)
    return row.tag


def test_classes_share_by_weight_and_of_equals_the_first_listed_goes_first() -> None:
    driver = Driver(by_weight(high=3, low=1))
    queue(driver, high=[100] * 7, low=[100] * 3)
    assert letters(driver) == "hlhhhlhhhl"


def test_a_share_is_of_tokens_not_of_runs() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[300] * 3, low=[100] * 7)
    assert letters(driver) == "hlllhlllhl"


def test_who_is_alone_is_served_and_who_joins_gets_no_arrears() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[100] * 10)
    serve(driver, 5)
    queue(driver, low=[100] * 3)
    assert letters(driver)[6:] == "lhlhlhh"


def test_who_leaves_with_credit_has_none_when_it_returns() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[500] * 9, low=[100])  # behind after its first run, and gone
    serve(driver, 3)
    queue(driver, low=[100] * 12)
    assert letters(driver)[4:] == "lllllh" + "lllllh" + "llhhhh"


def test_debt_outlasts_leaving_until_the_clock_has_passed_it() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[100] * 9, low=[100])
    assert serve(driver, 1) == ["low"]
    driver.succeed(driver.dispatches[-1], tokens=400)  # it has cost four times its estimate
    queue(driver, low=[100] * 2)
    assert letters(driver) == "hlhhhhlhlhhh"


def test_a_class_is_given_back_what_it_was_charged_too_much() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[100] * 6, low=[400, 100, 100, 100])
    assert serve(driver, 1) == ["low"]
    driver.succeed(driver.dispatches[-1], tokens=100)
    assert letters(driver) == "hlhlhlhlhh"


def test_what_a_heartbeat_owns_up_to_is_charged_to_the_class_at_once() -> None:
    driver = Driver(by_weight(runs=2, high=1, low=1))
    queue(driver, high=[100, 100], low=[100])
    assert (tag(driver, "high"), tag(driver, "low")) == (100 * UNIT, 100 * UNIT)
    driver.step(make_report(driver.dispatches[1], HEARTBEAT, 250))
    assert tag(driver, "low") == 250 * UNIT
    driver.succeed(driver.dispatches[1], tokens=300)
    assert tag(driver, "low") == 300 * UNIT


def test_what_a_lost_attempt_has_cost_after_all_is_charged_to_the_class() -> None:
    policy = by_weight(high=1, low=1)
    driver = Driver(replace(policy, leases=replace(policy.leases, lease_ms=50)))
    queue(driver, low=[100])
    driver.step(after_ms=60)  # lost, and dispatched again
    assert tag(driver, "low") == 100 * UNIT
    driver.step(make_report(driver.dispatches[0], FAILED, 70, retryable=True))
    assert tag(driver, "low") == 170 * UNIT


def test_a_class_whose_flows_are_all_blocked_neither_earns_nor_repays() -> None:
    policy = by_weight(high=1, mid=1, low=1)
    driver = Driver(policy)
    queue(driver, high=[100] * 9, mid=[300, 100, 100], low=[100])
    assert serve(driver, 2) == ["mid", "low"]  # mid has 200 to wait for
    driver.set_policy(pausing(policy, "mid"))
    assert serve(driver, 4) == ["high"] * 4
    driver.set_policy(policy)
    assert serve(driver, 5) == ["high", "high", "high", "mid", "high"]


def test_the_head_that_waits_for_tokens_is_overtaken_by_no_class() -> None:
    driver = Driver(by_weight(runs=None, tokens=300, high=1, low=1))
    queue(driver, high=[200, 250], low=[50, 100, 10])
    assert driver.served() == ["high1", "low1"]  # low2 is next, and the window is full
    driver.succeed(driver.dispatches[1])
    assert driver.served()[2:] == ["low2"]
    assert driver.serve_all()[3:] == ["low3", "high2"]


def test_a_class_that_the_policy_no_longer_names_has_the_least_share_until_it_is_empty() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[100] * 8, low=[100] * 4)
    assert serve(driver, 1) == ["low"]
    driver.set_policy(by_weight(high=3))
    assert letters(driver) == "hlhlhhhlhhhl"


@pytest.mark.parametrize(
    "policy", [in_order(high=0, low=0), by_weight(high=5)], ids=["in order without minimums", "one class"]
)
def test_nothing_is_booked_where_there_is_nothing_to_decide(policy: Policy) -> None:
    driver = Driver(policy)
    driver.submit("a", "r1", "r2")
    driver.serve_all()
    assert clock(driver) == 0
    assert tag(driver, "high") == 0


def test_in_order_a_class_with_a_minimum_is_served_as_soon_as_it_would_not_be_ahead_of_it() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, high=[100] * 7, low=[100] * 4)
    assert letters(driver) == "hhhlhhhlhll"


def test_a_dear_run_waits_until_it_is_due() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, high=[100] * 10, low=[300, 100])
    assert letters(driver) == "hhhhhhhhhlhl"


def test_what_nobody_else_wanted_is_not_held_against_a_class() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, low=[100] * 20)
    serve(driver, 5)
    queue(driver, high=[100] * 9)
    assert letters(driver)[6:15] == "hhhlhhhlh"


def test_a_class_above_is_served_at_the_next_dispatch() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, low=[100] * 3)
    queue(driver, high=[100])
    assert letters(driver) == "lhll"


def test_of_the_classes_that_are_due_the_first_listed_goes_first() -> None:
    driver = Driver(in_order(high=0, mid=25, low=25))
    queue(driver, high=[100] * 9, mid=[100] * 4, low=[100] * 4)
    assert letters(driver)[:13] == "hhhmlhhmlhhml"


@pytest.mark.parametrize(("tokens", "then"), [(400, "hhhhhhhhhhhhlh"), (25, "hlhhhlh")])
def test_a_minimum_is_of_what_runs_really_cost(tokens: int, then: str) -> None:
    """Whether the class that is served on its minimum guesses too little or too much."""
    driver = Driver(in_order(high=0, low=25))
    queue(driver, high=[100] * 30, low=[100] * 5)
    assert serve(driver, 3) == ["high", "high", "low"]
    driver.succeed(driver.dispatches[-1], tokens=tokens)
    assert letters(driver)[4 : 4 + len(then)] == then


def test_a_class_with_a_minimum_does_not_pay_for_the_mistakes_of_surplus_runs() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, low=[100] * 5)
    driver.succeed(driver.dispatches[-1], tokens=4_000)
    queue(driver, high=[100] * 9)
    assert letters(driver)[2:10] == "hhhlhhhl"


def test_a_refund_of_a_lost_attempt_raises_no_minimum() -> None:
    """It was served in surplus, owned up to a lot, and after its lease says that it has cost nothing."""
    driver = Driver(in_order(high=0, low=25))
    queue(driver, low=[100] * 2)
    lost = driver.dispatches[0]
    driver.step(make_report(lost, HEARTBEAT, 8_000))
    driver.step(after_ms=LONG_MS)
    behind = clock(driver) - tag(driver, "low")
    driver.step(make_report(lost, SUCCEEDED, 1))
    assert clock(driver) - tag(driver, "low") == behind


def test_a_minimum_that_is_not_wanted_is_not_saved_up() -> None:
    driver = Driver(in_order(high=0, low=25))
    queue(driver, high=[100] * 20, low=[100])
    serve(driver, 2)
    driver.step(make_cancel("low", "low1"))  # it was due
    driver.submit("low", "another", class_="low")
    assert serve(driver, 4) == ["high", "high", "high", "low"]


def test_a_minimum_that_is_blocked_waits_as_it_is() -> None:
    policy = in_order(high=0, low=25)
    driver = Driver(policy)
    queue(driver, high=[100] * 20, low=[100])
    assert serve(driver, 1) == ["high"]
    driver.set_policy(pausing(policy, "low"))
    assert serve(driver, 5) == ["high"] * 5
    driver.set_policy(policy)
    assert serve(driver, 2) == ["high", "low"]


def test_a_minimum_begins_when_it_is_given() -> None:
    driver = Driver(in_order(high=0, mid=10, low=0))
    queue(driver, high=[100] * 20, low=[100])
    serve(driver, 9)
    driver.set_policy(in_order(high=0, mid=10, low=25))
    assert serve(driver, 4) == ["high", "high", "high", "low"]


def test_classes_begin_level_when_they_begin_to_share() -> None:
    driver = Driver(in_order(high=0, low=10))
    queue(driver, high=[100] * 20, low=[100] * 9)
    serve(driver, 7)
    driver.set_policy(by_weight(high=1, low=1))
    assert serve(driver, 4) == ["high", "low", "high", "low"]


def test_a_change_of_weights_forgets_no_debt() -> None:
    driver = Driver(by_weight(high=1, low=1))
    queue(driver, high=[100] * 20, low=[400, 100])
    assert serve(driver, 1) == ["low"]
    driver.set_policy(by_weight(high=2, low=1))
    assert serve(driver, 8) == ["high"] * 7 + ["low"]  # 400 tokens at weight 1 are worth 800 at weight 2, less 100 paid


@pytest.mark.parametrize("policy", [by_weight(high=3, mid=2, low=1), in_order(high=0, mid=20, low=10)])
def test_a_takeover_changes_no_turn(policy: Policy) -> None:
    played = []
    for losing in (False, True):
        driver = Driver(policy)
        queue(driver, high=[70] * 12, mid=[90] * 9, low=[50] * 9)
        while len(driver.dispatches) < 30:
            driver.succeed(driver.dispatches[-1], tokens=60)
            if losing:
                driver.take_over()
        played.append(driver.served())
    assert played[0] == played[1]


@interpreted
@pytest.mark.parametrize(
    ("policy", "most"),
    [(by_weight(unused=9, high=3, mid=2, low=1), 100), (in_order(unused=5, high=0, mid=20, low=10), 2)],
)
def test_the_clock_is_set_back_before_it_leaves_a_row_and_no_turn_changes(
    policy: Policy, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []
    for limit in (classes.REBASE, UNIT):
        monkeypatch.setattr(classes, "REBASE", limit)
        driver = Driver(policy)
        queue(driver, high=[70] * 12, mid=[90] * 2, low=[50] * 9)
        serve(driver, 12)  # by then mid has nothing left
        queue(driver, mid=[90] * 5)
        played.append(driver.serve_all())
    assert played[0] == played[1]
    assert clock(driver) < most * UNIT


DEAREST = 10**12  # tokens: the most that a request or a report may state


@pytest.mark.parametrize(
    "policy", [by_weight(runs=100, high=1, low=1), in_order(runs=100, high=1, low=1)], ids=["shares", "strict"]
)
@pytest.mark.parametrize(("said", "spent"), [(DEAREST, 1), (1, DEAREST)])
def test_whatever_runs_cost_clock_and_tags_fit_their_rows(policy: Policy, said: int, spent: int) -> None:
    """A row that can't be written would stop its shard, and stop it again after every takeover."""
    driver = Driver(replace(policy, quantum=DEAREST))
    queue(driver, high=[said] * 300, low=[said] * 300)
    for done in range(0, 600, 100):
        driver.succeed(*driver.dispatches[done : done + 100], tokens=spent)
        assert max(abs(clock(driver)), abs(tag(driver, "high")), abs(tag(driver, "low"))) < 1 << 63
    assert len(driver.dispatches) == 600


def test_how_far_classes_are_from_their_shares() -> None:
    driver = Driver(by_weight(high=3, low=1))
    queue(driver, high=[100] * 7, low=[100] * 3)
    turns, rings = _turns(driver)
    assert [turns.share_ppm(ring) for ring in rings] == [750_000, 250_000]
    assert [turns.behind(ring) for ring in rings] == [-25, 25]  # high has had 100, of which 75 are its own
    driver.serve_all()
    assert [(turns.share_ppm(ring), turns.behind(ring)) for ring in rings] == [(0, 0), (0, 0)]


def test_how_far_a_class_is_from_its_minimum() -> None:
    driver = Driver(in_order(high=0, low=10))
    queue(driver, high=[100] * 7, low=[100] * 3)
    serve(driver, 4)
    turns, (high, low) = _turns(driver)
    assert (turns.share_ppm(high), turns.behind(high)) == (0, 0)
    assert (turns.share_ppm(low), turns.behind(low)) == (100_000, 50)


def _no_turns(state: State) -> None:
    state.turns = None


def _unnamed_ring(state: State) -> None:
    state.rings["gone"] = Ring(RingRecord(class_="gone"))


def _booked_without_flows(state: State) -> None:
    state.rings["unused"].record.tag = 5


def _not_welcomed(state: State) -> None:
    state.rings["high"].came_back = True


@pytest.mark.parametrize("corrupt", [_no_turns, _unnamed_ring, _booked_without_flows, _not_welcomed])
def test_turns_that_contradict_the_rules_are_found_out(corrupt: Callable[[State], None]) -> None:
    driver = Driver(by_weight(high=1, unused=1))
    queue(driver, high=[100])
    check(driver.shard)
    corrupt(driver.shard._state)
    with pytest.raises(InvariantBroken):
        check(driver.shard)


def _turns(driver: Driver) -> tuple[Turns, list[Ring]]:
    state = driver.shard._state
    assert state.turns is not None
    return state.turns, list(state.rings.values())
