"""A plan says from its seed alone what is to happen, and the harness knows how to do it."""

from collections import Counter

import pytest

from streams.app.faults import POINTS
from tests.integration.faults.kinds import HARMS
from tests.integration.faults.plan import AT_POINT, TO_NETWORK, TO_PROCESSES, TO_SURROUNDINGS, Fault, Plan, spread
from tests.integration.faults.record import Fired, missing, table


def test_there_is_a_harm_for_every_fault_and_a_fault_for_every_point() -> None:
    assert set(HARMS) == set(Fault) == {*TO_PROCESSES, *TO_SURROUNDINGS}
    assert sorted(AT_POINT.values()) == sorted(POINTS)


@pytest.mark.parametrize("faults", [0, 30, 80, 300])
def test_faults_are_spread_over_all_kinds(faults: int) -> None:
    counts = spread(faults)
    assert set(counts) == set(Fault)
    assert min(counts.values()) >= 1
    assert max(faults, len(Fault)) == sum(counts.values())


@pytest.mark.parametrize("seed", range(5))
def test_what_is_planned_is_in_the_bursts_and_those_to_surroundings_come_last_in_them(seed: int) -> None:
    plan = Plan(seed=seed, counts=spread(80))
    bursts = plan.bursts()
    assert Counter(fault for burst in bursts for fault in burst) == plan.counts
    pairs = [burst for burst in bursts if len(burst) > 1]
    assert pairs
    assert all(first in TO_PROCESSES and second in TO_SURROUNDINGS for first, second in pairs)
    assert plan.bursts() == bursts
    assert Plan(seed=seed + 1, counts=spread(80)).bursts() != bursts


@pytest.mark.parametrize("seed", range(5))
def test_the_network_of_an_only_scheduler_fails_while_it_is_up(seed: int) -> None:
    plan = Plan(seed=seed, schedulers=1, counts=spread(80))
    bursts = plan.bursts()
    assert Counter(fault for burst in bursts for fault in burst) == plan.counts
    pairs = [burst for burst in bursts if len(burst) > 1]
    assert pairs
    assert not {second for _, second in pairs} & set(TO_NETWORK)


def test_what_did_not_fire_is_missing() -> None:
    plan = Plan(seed=1, counts={Fault.KILL: 2, Fault.CUT: 1})
    fired = [Fired(Fault.KILL, "scheduler-1", 0.5, "gone"), Fired(Fault.CUT, "network", 1.0, "3 connections cut")]
    assert missing(plan, fired) == {Fault.KILL: 1}
    assert missing(plan, [*fired, fired[0], fired[0]]) == {}
    assert "all                                3       2" in table(plan, fired, "as it must be").splitlines()
