"""Competition of every kind, against the ideal and against the bound; and a control that must fail.

Measured over prefixes of the time, never after a full drain: then everybody has been served everything, by any
scheduler.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from streams.simulate.baselines import Fifo
from streams.simulate.bound import gaps_everywhere
from streams.simulate.fluid import Work, fluid
from streams.simulate.pool import Served, play
from streams.simulate.progress import steps, worked_off
from streams.simulate.scenarios.competition import COMPETITIONS, LASTS_MS, QUANTUM, SLOTS, TOKENS_PER_S
from streams.simulate.scheduler import Scheduler
from streams.simulate.story import Story
from tests.simulation.core_scheduler import CoreScheduler

MARGIN = 0.01  # the largest distance from the ideal, beyond the grain of whole runs, as a part of the stated share
CAPACITY = Fraction(SLOTS * TOKENS_PER_S, 1_000)  # tokens per ms
MOMENTS = steps(LASTS_MS, 6)
# Those whose pool is another are in tests/unit/simulate/test_comparison.py.
NAMES = pytest.mark.parametrize(
    "name", [name for name, each in COMPETITIONS.items() if each.slots == SLOTS and not each.outages]
)


def story(name: str, seed: int) -> Story:
    return COMPETITIONS[name].story(name, seed)


@cache
def played(name: str, seed: int) -> tuple[tuple[Served, ...], CoreScheduler]:
    told = story(name, seed)
    scheduler = CoreScheduler(told.policy, told.reported)
    return play(told.arrivals, scheduler, slots=SLOTS), scheduler


def unfairness(told: Story, served: tuple[Served, ...]) -> Fraction:
    """Return the largest distance from the ideal, at any moment, beyond the grain, as a part of the stated share."""
    weights = told.weights
    ideal = fluid([Work(each.at_ms, each.tenant, each.tokens) for each in told.arrivals], weights, CAPACITY, MOMENTS)
    grain = SLOTS * max(each.tokens for each in told.arrivals)
    worked = worked_off(served, MOMENTS)
    worst = Fraction(0)
    for index, (at_ms, expected) in enumerate(zip(MOMENTS, ideal, strict=True)):
        for tenant, weight in weights.items():
            stated = CAPACITY * at_ms * weight / sum(weights.values())
            off = abs(worked[tenant][index] - expected[tenant])
            worst = max(worst, (off - grain) / stated)
    return worst


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_everybody_gets_its_share_at_every_moment(name: str, seed: int) -> None:
    served, _ = played(name, seed)
    assert float(unfairness(story(name, seed), served)) <= MARGIN


@NAMES
def test_a_scheduler_that_restrains_nothing_is_caught(name: str) -> None:
    told, control = story(name, 0), Fifo()
    assert float(unfairness(told, play(told.arrivals, control, slots=SLOTS))) > 20 * MARGIN


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_the_gap_of_any_two_stays_within_the_bound_at_all_times(name: str, seed: int) -> None:
    served, _ = played(name, seed)
    weights = story(name, seed).weights
    found = list(gaps_everywhere(served, weights, QUANTUM))
    assert found
    for gap in found:
        assert gap.observed <= gap.bound, gap


@NAMES
def test_the_gap_of_the_control_grows_beyond_the_bound(name: str) -> None:
    """The bound can be broken: by a scheduler that serves in order of arrival it is."""
    told = story(name, 0)
    control: Scheduler = Fifo()
    served = play(told.arrivals, control, slots=SLOTS)
    assert any(gap.observed > gap.bound for gap in gaps_everywhere(served, told.weights, QUANTUM))


@NAMES
@pytest.mark.parametrize("seed", range(2))
def test_every_token_is_accounted_for(name: str, seed: int) -> None:
    served, scheduler = played(name, seed)
    told = story(name, seed)
    for view in scheduler.shard.snapshot().flows:
        runs = [run.arrival for run in served if run.arrival.tenant == view.tenant]
        tokens = sum(max(told.reported(run), told.policy.estimates.min_charge) for run in runs)
        assert view.charged == view.actual == tokens
