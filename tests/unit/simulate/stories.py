"""A story that is quick to play: one tenant floods four slots, two small ones file a few runs."""

from __future__ import annotations

from streams.core.policy import TenantRules
from streams.simulate.costs import Around
from streams.simulate.scenarios.rules import plain_policy
from streams.simulate.story import Story
from streams.simulate.workload import Load, make_workload


def small_story() -> Story:
    """Played ten times as fast as it is told."""
    loads = [
        Load(tenant="flood", runs=120, costs=Around(200), from_ms=0, until_ms=1_000),
        Load(tenant="large", runs=60, costs=Around(200), from_ms=0, until_ms=1_000),
        Load(tenant="few", runs=6, costs=Around(200), from_ms=0, until_ms=3_000),
        Load(tenant="fewer", runs=3, costs=Around(200), from_ms=500, until_ms=3_000),
    ]
    return Story(
        name="small",
        title="a small story",
        arrivals=make_workload(loads, seed=1, tokens_per_s=1_000),
        policy=plain_policy("small", 4, quantum=200, estimate=200, tenants={"large": TenantRules(weight=2)}),
        slots=4,
        tokens_per_s=1_000,
        compression=10,
        lasts_ms=4_000,
    )
