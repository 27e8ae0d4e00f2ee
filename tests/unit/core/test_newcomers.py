"""When a flow that the shard did not know has its first visit: in the round after the one it came in.

Quantum 100, all weights 1, and a window of one place: each order here can be worked out by hand.
"""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver


def busy(**costs: list[int]) -> Driver:
    """Queue runs `a1, a2, ...` of tenant `a` and so on, in one step: the cursor stands at the first."""
    driver = Driver(make_policy(runs=1))
    driver.step(
        *(
            request
            for tenant, tenant_costs in costs.items()
            for number, cost in enumerate(tenant_costs, 1)
            for request in driver.requests(tenant, [f"{tenant}{number}"], cost=cost)
        )
    )
    return driver


def rounds(driver: Driver) -> dict[str, int]:
    return {dispatch.run_id: dispatch.round for dispatch in driver.dispatches}


def test_a_newcomer_begins_with_the_next_round() -> None:
    driver = busy(a=[100] * 3, b=[100] * 3)  # a1 goes: the cursor has not come to the newcomer's place
    driver.submit("new", "n1", cost=100)
    assert driver.serve_all() == ["a1", "b1", "a2", "b2", "n1", "a3", "b3"]
    assert (rounds(driver)["b1"], rounds(driver)["n1"]) == (1, 2)


def test_a_newcomer_dearer_than_a_quantum_counts_its_rounds_from_the_next_one_on() -> None:
    driver = busy(a=[100] * 5)
    driver.submit("new", "n1", cost=250)
    assert driver.serve_all() == ["a1", "a2", "a3", "a4", "n1", "a5"]
    assert (rounds(driver)["n1"], driver.dispatches[4].deficit_before) == (4, 300)


def test_who_comes_before_the_first_visit_begins_with_this_round() -> None:
    driver = Driver(make_policy(runs=1, classes=("high", "low")))
    driver.submit("x", "first", class_="high")
    driver.submit("a", "a1", "a2", class_="low")  # each in a step of its own; nobody has been visited in this class
    driver.submit("b", "b1", class_="low")
    assert driver.serve_all() == ["first", "a1", "b1", "a2"]
    assert (rounds(driver)["a1"], rounds(driver)["b1"], rounds(driver)["a2"]) == (1, 1, 2)


def test_who_came_in_an_earlier_round_is_served_in_this_one_if_the_cursor_has_not_passed_it() -> None:
    driver = busy(a=[100] * 3)
    driver.step(*driver.requests("new", ["gone"]), make_cancel("new", "gone"))
    driver.succeed(driver.dispatches[-1])  # a2 goes, in round 2
    driver.submit("new", "n1", cost=100)
    assert driver.serve_all() == ["a1", "a2", "n1", "a3"]


def test_a_newcomer_whose_run_is_delayed_waits_no_longer_for_it() -> None:
    driver = busy(a=[100] * 9)
    driver.submit("b", "b1", not_before_ms=START_MS + 50)
    assert driver.flow_row("b").accrued == 1  # as if it had been visited
    for _ in range(3):
        driver.succeed(driver.dispatches[-1])
    driver.step(after_ms=50)
    driver.succeed(driver.dispatches[-1])
    assert (driver.served()[-1], driver.dispatches[-1].round) == ("b1", 4)  # that of a4: it is known, and not passed


def test_a_takeover_does_not_make_a_newcomer_anybody_else() -> None:
    driver = busy(a=[100] * 3, b=[100] * 3)
    driver.submit("new", "n1", cost=100)
    driver.take_over()
    assert driver.serve_all() == ["a1", "b1", "a2", "b2", "n1", "a3", "b3"]


@pytest.mark.parametrize("cancels", [False, True])
def test_fresh_names_one_at_a_time_starve_nobody(cancels: bool) -> None:
    """A name that was never heard of for each run, and its place is behind all: one run a round, as from one name.

    Also if each name files a run and takes it back beforehand, while the name before it is being served.
    """
    driver = busy(a=[100] * 30, b=[100] * 30)
    driver.submit("new0", "n0")
    names = 1
    while len(driver.dispatches) < 32:
        ended = driver.dispatches[-1]
        inputs = []
        if ended.run_id == f"n{names - 1}":
            name = f"new{names}"
            inputs = driver.requests(name, [f"n{names}"])
            if cancels:
                driver.step(*driver.requests(name, ["bait"]), make_cancel(name, "bait"))
            names += 1
        driver.step(make_report(ended, tokens=100), *inputs)
    assert [run_id[0] for run_id in driver.served()] == ["a", "b", *islice(cycle("abn"), 30)]
