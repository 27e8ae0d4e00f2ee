"""Competition of every kind, against the ideal and against the bound; and a control that must fail.

Measured over prefixes of the time, never after a full drain: then everybody has been served everything, by any
scheduler.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from streams.simulate.bound import gaps_everywhere
from streams.simulate.fluid import Work, fluid
from streams.simulate.pool import Served, play
from streams.simulate.scheduler import Scheduler
from streams.simulate.schedulers import Fifo
from streams.simulate.workload import Arrival
from tests.builders import make_policy
from tests.simulation.core_scheduler import CoreScheduler
from tests.simulation.scenarios import LASTS_MS, QUANTUM, SCENARIOS, SLOTS, Scenario

CAPACITY = Fraction(SLOTS)  # tokens per ms
MOMENTS = tuple(LASTS_MS * part // 6 for part in range(1, 7))
NAMES = pytest.mark.parametrize("name", SCENARIOS)


def ours(scenario: Scenario) -> CoreScheduler:
    policy = make_policy(
        quantum=QUANTUM,
        runs=SLOTS,
        weights=scenario.weights,
        default_estimate=100,
        estimates=scenario.estimates,
    )
    silent = scenario.reports_nothing
    return CoreScheduler(policy, lambda arrival: 0 if arrival.tenant in silent else arrival.tokens)


@cache
def played(name: str, seed: int) -> tuple[tuple[Served, ...], CoreScheduler]:
    scenario = SCENARIOS[name]
    scheduler = ours(scenario)
    return play(scenario.arrivals(seed), scheduler, slots=SLOTS), scheduler


def worked(served: tuple[Served, ...], tenant: str, at_ms: int) -> Fraction:
    """Return how many tokens of the tenant's runs have been worked off by `at_ms`."""
    total = Fraction(0)
    for run in served:
        if run.arrival.tenant == tenant and run.started_ms < at_ms:
            part = Fraction(min(at_ms, run.ended_ms) - run.started_ms, run.ended_ms - run.started_ms)
            total += run.arrival.tokens * part
    return total


def unfairness(scenario: Scenario, arrivals: tuple[Arrival, ...], served: tuple[Served, ...]) -> Fraction:
    """Return the largest distance from the ideal, at any moment, beyond the grain, as a part of the stated share."""
    weights = {tenant: scenario.weight(tenant) for tenant in scenario.traffic}
    ideal = fluid([Work(each.at_ms, each.tenant, each.tokens) for each in arrivals], weights, CAPACITY, MOMENTS)
    grain = SLOTS * max(each.tokens for each in arrivals)
    worst = Fraction(0)
    for at_ms, expected in zip(MOMENTS, ideal, strict=True):
        for tenant, weight in weights.items():
            stated = CAPACITY * at_ms * weight / sum(weights.values())
            off = abs(worked(served, tenant, at_ms) - expected[tenant])
            worst = max(worst, (off - grain) / stated)
    return worst


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_everybody_gets_its_share_at_every_moment(name: str, seed: int) -> None:
    served, _ = played(name, seed)
    scenario = SCENARIOS[name]
    off = float(unfairness(scenario, scenario.arrivals(seed), served))
    assert off <= scenario.margin


@NAMES
def test_a_scheduler_that_restrains_nothing_is_caught(name: str) -> None:
    scenario = SCENARIOS[name]
    control: Scheduler = Fifo()
    arrivals = scenario.arrivals(0)
    off = float(unfairness(scenario, arrivals, play(arrivals, control, slots=SLOTS)))
    assert off > 20 * scenario.margin


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_the_gap_of_any_two_stays_within_the_bound_at_all_times(name: str, seed: int) -> None:
    served, _ = played(name, seed)
    weights = {tenant: SCENARIOS[name].weight(tenant) for tenant in SCENARIOS[name].traffic}
    found = list(gaps_everywhere(served, weights, QUANTUM))
    assert found
    for gap in found:
        assert gap.observed <= gap.bound, gap


@NAMES
def test_the_gap_of_the_control_grows_beyond_the_bound(name: str) -> None:
    """The bound can be broken: by a scheduler that serves in order of arrival it is."""
    scenario = SCENARIOS[name]
    weights = {tenant: scenario.weight(tenant) for tenant in scenario.traffic}
    control: Scheduler = Fifo()
    assert any(
        gap.observed > gap.bound
        for gap in gaps_everywhere(play(scenario.arrivals(0), control, slots=SLOTS), weights, QUANTUM)
    )


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_every_token_is_accounted_for(name: str, seed: int) -> None:
    served, scheduler = played(name, seed)
    silent = SCENARIOS[name].reports_nothing
    for view in scheduler.shard.snapshot().flows:
        runs = [run.arrival for run in served if run.arrival.tenant == view.tenant]
        tokens = sum(SCENARIOS[name].min_charge if view.tenant in silent else run.tokens for run in runs)
        assert view.charged == view.actual == tokens
