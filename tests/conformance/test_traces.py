"""Published traffic of a paper on fair serving (virtual token counters), replayed: about 1,340 weighted tokens/s."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from streams.simulate.baselines import Fifo
from streams.simulate.bound import gaps_everywhere
from streams.simulate.pool import Served, play
from streams.simulate.workload import Arrival, in_order
from tests.builders import make_policy
from tests.conformance.cases import Case, all_cases
from tests.simulation.core_scheduler import CoreScheduler

SLOTS = 8
TOKENS_PER_S = 1_340 / SLOTS  # of one slot
QUANTUM = 768


def arrivals_of(case: Case) -> tuple[Arrival, ...]:
    arrived: list[Arrival] = []
    for traffic in case.arrivals:
        tenant, draw = traffic["tenant"], Random(traffic["tenant"])
        gap_ms = 1_000 / traffic["rate_per_s"]
        at = draw.random() * gap_ms
        while at < traffic["for_s"] * 1_000:
            on = "on_off_s" not in traffic or int(at / 1_000 / traffic["on_off_s"]) % 2 == 0
            if on:
                number = f"{tenant}-{len(arrived)}"
                cost = traffic["cost"]
                arrived.append(Arrival(int(at), tenant, number, "flow", cost, int(cost / TOKENS_PER_S * 1_000), cost))
            at += draw.expovariate(1 / gap_ms) if traffic["at"] == "Poisson" else gap_ms
    return in_order(arrived)


def weights_of(case: Case) -> dict[str, int]:
    return {tenant["id"]: tenant["weight"] for tenant in case.tenants}


@cache
def replayed(name: str) -> tuple[Served, ...]:
    case = all_cases()[name]
    policy = make_policy(quantum=QUANTUM, runs=SLOTS, weights=weights_of(case))
    return play(arrivals_of(case), CoreScheduler(policy), slots=SLOTS)


def shares(served: tuple[Served, ...], tenants: dict[str, int], until_s: int) -> list[float]:
    """Return each tenant's part of the tokens whose service had begun by then."""
    begun = [run.arrival for run in served if run.started_ms < until_s * 1_000]
    total = sum(each.tokens for each in begun)
    return [sum(each.tokens for each in begun if each.tenant == tenant) / total for tenant in tenants]


def largest_difference(served: tuple[Served, ...], until_s: int) -> int:
    """Return the largest difference of service, at any time, between the two tenants."""
    difference = largest = 0
    for run in served:
        if run.started_ms < until_s * 1_000:
            difference += run.arrival.tokens if run.arrival.tenant == "0" else -run.arrival.tokens
            largest = max(largest, abs(difference))
    return largest


@pytest.mark.parametrize("name", [name for name, case in all_cases().items() if case.kind == "trace"])
def test_the_gap_stays_within_the_bound(name: str) -> None:
    for gap in gaps_everywhere(replayed(name), weights_of(all_cases()[name]), QUANTUM):
        assert gap.observed <= gap.bound, gap


def test_vtc_overload_two() -> None:
    case = all_cases()["vtc_overload_two"]
    served = replayed(case.name)
    assert shares(served, weights_of(case), 360) == pytest.approx([0.5, 0.5], abs=0.01)
    # What differs at 60 s differs at 360 s by no more: it does not grow with time.
    assert largest_difference(served, 360) <= largest_difference(served, 60) + QUANTUM
    assert largest_difference(served, 360) < case.expect["max_accumulated_difference"]["vtc"]


def test_vtc_overload_two_under_fifo() -> None:
    """The control: shares follow what is sent, as the paper found."""
    case = all_cases()["vtc_overload_two"]
    served = play(arrivals_of(case), Fifo(), slots=SLOTS)
    expected = case.expect["share_of_service_at_360s"]["fcfs"]
    assert shares(served, weights_of(case), 360) == pytest.approx(expected, abs=0.01)


def test_vtc_on_off_overload() -> None:
    """Tenant 0 sends in every other minute, at more than twice its share: it is always backlogged."""
    case = all_cases()["vtc_on_off_overload"]
    served = replayed(case.name)
    assert shares(served, weights_of(case), 600) == pytest.approx(case.expect["share_at_600s"], abs=0.01)
    assert largest_difference(served, 600) < case.expect["max_accumulated_difference"]


def test_vtc_short_against_long() -> None:
    """Equal tokens, so four times as many of the short runs."""
    case = all_cases()["vtc_short_against_long"]
    served = replayed(case.name)
    assert shares(served, weights_of(case), 584) == pytest.approx([0.5, 0.5], abs=0.01)
    begun = [run.arrival.tenant for run in served if run.started_ms < 584_000]
    assert begun.count("0") / begun.count("1") == pytest.approx(4, rel=0.03)
    assert largest_difference(served, 584) < case.expect["max_accumulated_difference"]["vtc"]


def test_vtc_weighted_1_2_3_4() -> None:
    case = all_cases()["vtc_weighted_1_2_3_4"]
    found = shares(replayed(case.name), weights_of(case), 360)
    assert found == pytest.approx(case.expect["share_ours"], abs=case.expect["tolerance"])
