"""The two stories: who files what, under which rules, on how many slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streams.core.policy import DEFAULT_CLASS, Policy, PriorityClass, TenantRules, Window
from streams.demo.options import StoryName
from streams.simulate.traces import ARENA, bundled, read_trace, to_arrivals
from streams.simulate.workload import Arrival, HeavyTail, Load, make_workload, tokens_by_tenant

SEED: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A workload with its policy and its pool. Times of arrivals are compressed: as they will be played."""

    name: str
    title: str
    arrivals: tuple[Arrival, ...]
    policy: Policy
    slots: int  # of the worker fleet, and the policy's window
    tokens_per_s: int  # that one slot works off, in compressed time
    compression: int  # how many seconds of the story pass in one second of the demo

    @property
    def tenants(self) -> tuple[str, ...]:
        """Everyone who files anything, in the order of their first arrivals."""
        return tuple(tokens_by_tenant(self.arrivals))

    @property
    def weights(self) -> Mapping[str, int]:
        return {tenant: self.policy.rules_for(tenant).weight for tenant in self.tenants}

    @property
    def small(self) -> tuple[str, ...]:
        """The tenants that ask for at most half of an equal part of all tokens."""
        asked = tokens_by_tenant(self.arrivals)
        total = sum(asked.values())
        return tuple(tenant for tenant, tokens in asked.items() if tokens * 2 * len(asked) <= total)


def make_stories(which: StoryName, seed: int | None) -> list[Story]:
    """Return the stories to be played, in order."""
    stories = []
    if which in ("both", "meridian"):
        stories.append(meridian(SEED if seed is None else seed))
    if which in ("both", "trace"):
        stories.append(trace())
    return stories


# --- eleven tenants, one of which files 900 runs in twenty minutes

_MERIDIAN_COMPRESSION: Final = 80
_MERIDIAN_SLOTS: Final = 72
_TWENTY_MINUTES_MS: Final = 20 * 60_000 // _MERIDIAN_COMPRESSION
_MERIDIAN_TOKENS_PER_S: Final = 3_500

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
    """The first story: one tenant files 900 runs, a second large one dearer runs, nine their few."""
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
        arrivals=make_workload(loads, seed=seed, tokens_per_s=_MERIDIAN_TOKENS_PER_S),
        policy=_policy(
            "meridian",
            _MERIDIAN_SLOTS,
            quantum=4_000,
            estimate=6_000,
            tenants={name: TenantRules(plan=plan, weight=_PLANS[plan]) for name, plan in plans.items()},
        ),
        slots=_MERIDIAN_SLOTS,
        tokens_per_s=_MERIDIAN_TOKENS_PER_S,
        compression=_MERIDIAN_COMPRESSION,
    )


def _load(tenant: str, runs: int) -> Load:
    return Load(tenant=tenant, runs=runs, costs=_AGENT, from_ms=0, until_ms=_TWENTY_MINUTES_MS, workflow="agent")


# --- ten minutes of real traffic

_TRACE_COMPRESSION: Final = 25
_TRACE_SLOTS: Final = 60
_TRACE_TOKENS_PER_S: Final = 270  # two thirds of what would keep up with the trace


def trace() -> Story:
    """The real one: 1,500 requests of 27 tenants, all of one weight, faster than the pool can serve them."""
    return Story(
        name="trace",
        title="a real trace: 27 tenants of a chat arena, 1,500 requests in ten minutes",
        arrivals=to_arrivals(
            read_trace(bundled(ARENA)), compression=_TRACE_COMPRESSION, tokens_per_s=_TRACE_TOKENS_PER_S
        ),
        policy=_policy("trace", _TRACE_SLOTS, quantum=300, estimate=400, tenants={}),
        slots=_TRACE_SLOTS,
        tokens_per_s=_TRACE_TOKENS_PER_S,
        compression=_TRACE_COMPRESSION,
    )


def _policy(name: str, slots: int, *, quantum: int, estimate: int, tenants: dict[str, TenantRules]) -> Policy:
    return Policy(
        name=name,
        quantum=quantum,
        window=Window(runs=slots),
        classes=(PriorityClass(name=DEFAULT_CLASS, default_estimate=estimate),),
        tenants=tenants,
    )
