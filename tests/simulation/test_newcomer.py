"""What a newcomer waits for, against the bound: its first visit is in the round after the one in which it came."""

from __future__ import annotations

from itertools import groupby

from tests.builders import make_policy
from tests.drivers import Driver

QUANTUM = 100
COST = 1  # so that hardly anything but whole visits makes a gap


def test_others_may_be_visited_twice_before_a_newcomer_and_never_again() -> None:
    driver = Driver(make_policy(quantum=QUANTUM, runs=1), doubted=False)
    driver.submit("old", *(f"o{number}" for number in range(2_000)), cost=COST)
    driver.submit("new", *(f"n{number}" for number in range(2_000)), cost=COST)
    served: list[str] = []
    while len(served) < 2_000:
        served.append(driver.dispatches[-1].tenant)
        driver.succeed(driver.dispatches[-1])
    visits = [(tenant, len(list(runs))) for tenant, runs in groupby(served)]
    assert visits[:4] == [("old", 2 * QUANTUM), ("new", QUANTUM), ("old", QUANTUM), ("new", QUANTUM)]
    bound = QUANTUM + 2 * COST
    assert bound < widest(served) <= bound + QUANTUM
    assert widest(served[2 * QUANTUM :]) <= bound  # from the newcomer's first visit on


def widest(served: list[str]) -> int:
    """Return the largest gap between the two over any part of it, in tokens."""
    value = low = high = 0
    for tenant in served:
        value += COST if tenant == "old" else -COST
        low, high = min(low, value), max(high, value)
    return high - low
