"""Ours against the max-min oracle, and controls that must fail the same check: a check they pass would see nothing."""

from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest

from streams.core.policy import Policy, PriorityClass, TenantRules
from streams.simulate.backlog import Contest, Interval
from streams.simulate.baselines import Fifo, NoRestraint, RoundRobin
from streams.simulate.costs import HeavyTail
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import play
from streams.simulate.report import shares
from streams.simulate.scheduler import Scheduler
from streams.simulate.workload import Arrival, Load, make_workload

SLOTS = 8
MARGIN = Fraction(5, 100)
# All of these are backlogged from 500 ms to 4 s, but for the small one, which asks for less than its share.
CONTEST = Contest(Interval(500, 4_000), ("dear", "greedy", "plain"))


def workload(seed: int, greedy: int, dear: int) -> tuple[Arrival, ...]:
    """`greedy` files `greedy` times as many runs; those of `dear` cost `dear` times as much."""
    even = HeavyTail(50, reach=2.0, sigma=0.4)
    loads = [
        Load(tenant="greedy", runs=900 * greedy, costs=even, from_ms=0, until_ms=500),
        Load(tenant="dear", runs=900, costs=HeavyTail(50 * dear, 2.0, 0.4), from_ms=0, until_ms=500, workflow="dear"),
        Load(tenant="plain", runs=900, costs=even, from_ms=0, until_ms=500),
        Load(tenant="small", runs=40, costs=even, from_ms=500, until_ms=3_800),
    ]
    return make_workload(loads, seed=seed, tokens_per_s=2_000)


def unfairness(arrivals: tuple[Arrival, ...], scheduler: Scheduler, weights: Mapping[str, int]) -> Fraction:
    """The largest relative distance between what a tenant got of the interval and what max-min gives it."""
    found = shares(play(arrivals, scheduler, slots=SLOTS), CONTEST, weights)
    assert found["small"].asked == found["small"].stated, "the small tenant asks for less than its share"
    return max(abs(Fraction(share.observed, share.stated) - 1) for share in found.values())


def ours(weights: Mapping[str, int]) -> Scheduler:
    rules = {tenant: TenantRules(weight=weight) for tenant, weight in weights.items()}
    classes = (PriorityClass(name="default", default_estimate=50),)
    return DeficitRoundRobin(Policy(quantum=100, classes=classes, tenants=rules), slots=SLOTS)


EQUAL = {"greedy": 1, "dear": 1, "plain": 1, "small": 1}
PLANS = {"greedy": 1, "dear": 2, "plain": 4, "small": 2}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [EQUAL, PLANS], ids=["equal", "plans"])
@pytest.mark.parametrize(("greedy", "dear"), [(1, 1), (4, 1), (1, 5), (4, 5)])
def test_everyone_gets_its_max_min_share(seed: int, weights: Mapping[str, int], greedy: int, dear: int) -> None:
    assert unfairness(workload(seed, greedy, dear), ours(weights), weights) <= MARGIN


@pytest.mark.parametrize(
    ("control", "greedy", "dear", "weights"),
    [
        (Fifo, 4, 1, EQUAL),
        (NoRestraint, 4, 1, EQUAL),
        (RoundRobin, 1, 5, EQUAL),  # fair in runs is not fair in tokens
        (RoundRobin, 1, 1, PLANS),  # nor does it know weights
    ],
)
def test_the_controls_are_caught(
    control: Callable[[], Scheduler], greedy: int, dear: int, weights: Mapping[str, int]
) -> None:
    assert unfairness(workload(0, greedy, dear), control(), weights) > 5 * MARGIN


def test_turns_by_count_are_fair_when_all_runs_cost_the_same_and_all_weigh_the_same() -> None:
    assert unfairness(workload(0, 4, 1), RoundRobin(), EQUAL) <= MARGIN
