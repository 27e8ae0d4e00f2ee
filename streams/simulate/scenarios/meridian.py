"""Meridian's Tuesday: eleven tenants, one of which files 900 runs in twenty minutes."""

from __future__ import annotations

from typing import Final

from streams.core.policy import TenantRules
from streams.simulate.costs import HeavyTail
from streams.simulate.scenarios.rules import plain_policy
from streams.simulate.story import Story
from streams.simulate.workload import Load, make_workload

_COMPRESSION: Final = 80
_SLOTS: Final = 72
_TWENTY_MINUTES_MS: Final = 20 * 60_000 // _COMPRESSION
_TOKENS_PER_S: Final = 3_500

_PLANS: Final = {"starter": 1, "team": 2, "enterprise": 4}
_GREEDY: Final = ("meridian", "starter")
_LARGE: Final = ("borealis", "team")
_FEW: Final = {  # (plan, runs)
    "cobalt": ("starter", 6),
    "dune": ("team", 7),
    "ember": ("enterprise", 8),
    "fjord": ("starter", 9),
    "garnet": ("team", 10),
    "harbor": ("enterprise", 11),
    "indigo": ("starter", 12),
    "juniper": ("team", 13),
    "kestrel": ("enterprise", 14),
}

# Runs of agents are alike in kind and unlike in cost: the dearest costs more than forty times the cheapest.
_AGENT: Final = HeavyTail(median=4_000, reach=7.0, sigma=0.7)
# Research costs twice as much and varies less. Borealis files fewer runs than meridian, yet more than its plan gives
# it: so two large tenants, one by number and one by cost, are backlogged for most of the story.
_RESEARCH: Final = HeavyTail(median=8_000, reach=3.5, sigma=0.45)


def meridian(seed: int) -> Story:
    """One tenant files 900 runs, a second large one dearer runs, nine their few."""
    large = Load(
        tenant=_LARGE[0],
        runs=400,
        costs=_RESEARCH,
        from_ms=0,
        until_ms=_TWENTY_MINUTES_MS * 2 // 3,
        workflow="research",
    )
    loads = [_load(_GREEDY[0], 900), large, *(_load(name, runs) for name, (_, runs) in _FEW.items())]
    plans = dict([_GREEDY, _LARGE]) | {name: plan for name, (plan, _) in _FEW.items()}
    return Story(
        name="meridian",
        title="eleven tenants, one of which files 900 runs in twenty minutes",
        arrivals=make_workload(loads, seed=seed, tokens_per_s=_TOKENS_PER_S),
        policy=plain_policy(
            "meridian",
            _SLOTS,
            quantum=4_000,
            estimate=6_000,
            tenants={name: TenantRules(plan=plan, weight=_PLANS[plan]) for name, plan in plans.items()},
        ),
        slots=_SLOTS,
        tokens_per_s=_TOKENS_PER_S,
        compression=_COMPRESSION,
    )


def _load(tenant: str, runs: int) -> Load:
    return Load(tenant=tenant, runs=runs, costs=_AGENT, from_ms=0, until_ms=_TWENTY_MINUTES_MS, workflow="agent")
