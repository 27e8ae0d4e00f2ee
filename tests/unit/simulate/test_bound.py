from fractions import Fraction

import pytest

from streams.core.policy import Policy, TenantRules
from streams.simulate.backlog import Contest, Interval, find_contest
from streams.simulate.baselines import Fifo
from streams.simulate.bound import gaps, gaps_everywhere, most_in_flight
from streams.simulate.costs import HeavyTail
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import Served, play
from streams.simulate.workload import Arrival, Load, make_workload

CONTEST = Contest(Interval(0, 100), ("a", "b"))


def run(tenant: str, decided_ms: int, tokens: int, *, charge: int | None = None, lasts_ms: int = 1) -> Served:
    arrival = Arrival(0, tenant, f"{tenant}{decided_ms}", "work", tokens, lasts_ms)
    return Served(arrival, tokens if charge is None else charge, decided_ms, decided_ms, decided_ms + lasts_ms)


def test_the_gap_is_the_widest_over_any_part_of_the_interval() -> None:
    # a is 30 ahead, then b catches up 50: the widest part is the second.
    served = [run("a", 1, 30), run("b", 2, 25), run("b", 3, 25), run("a", 4, 20)]
    (gap,) = gaps(served, CONTEST, {"a": 1, "b": 1}, quantum=10)
    assert gap.observed == 50


def test_service_counts_by_weight_and_only_inside_the_interval() -> None:
    served = [run("a", 1, 30), run("b", 2, 90), run("b", 100, 1_000), run("c", 3, 500)]
    (gap,) = gaps(served, CONTEST, {"a": 1, "b": 2}, quantum=10)
    assert gap.observed == 45  # a leads by 30, then b by 45 - 30


def test_the_bound_is_the_one_that_the_core_states() -> None:
    served = [
        run("a", 1, 30, charge=20, lasts_ms=50),  # 10 too little
        run("a", 2, 10, charge=25, lasts_ms=50),  # 15 too much
        run("b", 3, 40, lasts_ms=50),
    ]
    (gap,) = gaps(served, Contest(Interval(3, 100), ("a", "b")), {"a": 2, "b": 3}, quantum=7)
    assert gap.bound == 7 + Fraction(40 + 2 * 25, 2) + Fraction(40 + 1 * 25, 3)
    assert gap.holds


def test_a_gap_above_the_bound_is_seen() -> None:
    served = [run("a", at, 10) for at in range(50)] + [run("b", 60, 10)]
    (gap,) = gaps(served, CONTEST, {"a": 1, "b": 1}, quantum=10)
    assert gap.observed == 500
    assert gap.bound == 10 + 10 + 20
    assert not gap.holds


def test_most_in_flight_counts_an_end_before_a_start() -> None:
    served = [run("a", 0, 1, lasts_ms=10), run("a", 5, 1, lasts_ms=10), run("a", 10, 1, lasts_ms=10)]
    assert most_in_flight(served, "a") == 2
    assert most_in_flight(served, "b") == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_core_keeps_its_bound_and_fifo_does_not(seed: int) -> None:
    loads = [
        Load(tenant="a", runs=900, costs=HeavyTail(100, reach=2.0, sigma=0.3), from_ms=0, until_ms=2_000),
        Load(tenant="b", runs=300, costs=HeavyTail(100, reach=2.0, sigma=0.3), from_ms=0, until_ms=2_000),
    ]
    arrivals = make_workload(loads, seed=seed, tokens_per_s=5_000)
    policy = Policy(quantum=100, tenants={"a": TenantRules(weight=1), "b": TenantRules(weight=3)})
    weights = {"a": 1, "b": 3}
    ours = play(arrivals, DeficitRoundRobin(policy, slots=4), slots=4)
    contest = find_contest(ours)
    assert contest is not None
    assert contest.interval.length_ms > 1_000
    assert all(gap.holds for gap in gaps(ours, contest, weights, policy.quantum))
    fifo = play(arrivals, Fifo(), slots=4)
    fifo_contest = find_contest(fifo)
    assert fifo_contest is not None
    assert not all(gap.holds for gap in gaps(fifo, fifo_contest, weights, policy.quantum))


def test_a_newcomer_adds_a_quantum_until_its_first_visit() -> None:
    """Before it everybody else may have had two visits."""
    served = [run("a", 1, 10), run("a", 2, 10), run("b", 3, 10), run("a", 4, 10), run("b", 5, 10)]
    weights = {"a": 1, "b": 1}
    (whole,) = gaps(served, Contest(Interval(0, 100), ("a", "b")), weights, quantum=7)
    (later,) = gaps(served, Contest(Interval(3, 100), ("a", "b")), weights, quantum=7)
    assert whole.bound == 7 + 7 + 20
    assert later.bound == 7 + 20


def test_every_interval_of_every_two_is_measured() -> None:
    first = [run("a", 10, 10), run("b", 10, 20), run("a", 20, 10), run("b", 20, 20)]
    later = [
        Served(each.arrival._replace(at_ms=100), each.charge, 100 + each.decided_ms, 0, 200)
        for each in (run("a", 30, 5), run("b", 40, 5))
    ]
    found = list(gaps_everywhere(first + later, {"a": 1, "b": 1}, quantum=10))
    assert [(gap.first, gap.second, gap.interval) for gap in found] == [
        ("a", "b", Interval(0, 20)),
        ("a", "b", Interval(100, 130)),
    ]
