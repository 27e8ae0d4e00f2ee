"""A small story that is quick to play, and its records."""

from __future__ import annotations

import pytest

from streams.core.policy import Policy, PriorityClass, TenantRules, Window
from streams.demo.records import Records
from streams.simulate.costs import HeavyTail
from streams.simulate.story import Story
from streams.simulate.workload import Load, make_workload
from tests.unit.demo.recorded import record


@pytest.fixture(scope="session")
def story() -> Story:
    """Two large tenants and two small ones on 16 slots."""
    speed = 10_000
    costs = HeavyTail(1_000, reach=3.0, sigma=0.4)
    loads = [
        Load(tenant="big", runs=500, costs=costs, from_ms=0, until_ms=1_000),
        Load(tenant="large", runs=400, costs=costs, from_ms=0, until_ms=1_000),
        Load(tenant="little", runs=8, costs=costs, from_ms=100, until_ms=1_000),
        Load(tenant="tiny", runs=2, costs=costs, from_ms=300, until_ms=1_000),
    ]
    return Story(
        name="small",
        title="a small story",
        arrivals=make_workload(loads, seed=1, tokens_per_s=speed),
        policy=Policy(
            name="small",
            quantum=1_000,
            window=Window(runs=16),
            classes=(PriorityClass(name="default", default_estimate=1_000),),
            tenants={"big": TenantRules(plan="starter", weight=1), "large": TenantRules(plan="team", weight=2)},
        ),
        slots=16,
        tokens_per_s=speed,
        compression=200,
    )


@pytest.fixture
def records(story: Story) -> Records:
    """As it would have run."""
    return record(story, handover_ms=2)
