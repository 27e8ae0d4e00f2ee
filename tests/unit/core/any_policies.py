"""Hypothesis strategy for any policy that a document can state."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import strategies as st

from streams.core.policy import (
    BetweenClasses,
    Estimates,
    Leases,
    Limits,
    Memory,
    Policy,
    PriorityClass,
    TenantRules,
    Window,
)
from streams.core.policy_fields import (
    MAX_CLASS_WEIGHT,
    MAX_MS,
    MAX_RUNS,
    MAX_SUM,
    MAX_TENANT_HISTORIES,
    MAX_TOKENS,
    MAX_WEIGHT,
)

# Not surrogates: they are no text in UTF-8. Dots, quotes and brackets come up by themselves.
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
tokens = st.integers(1, MAX_TOKENS)
runs_limit = st.none() | st.integers(1, MAX_RUNS)
sum_limit = st.none() | st.integers(1, MAX_SUM)
counts = st.integers(1, MAX_RUNS)
weights = st.integers(1, MAX_WEIGHT)

rules = st.builds(
    TenantRules,
    plan=st.none() | names,
    weight=weights,
    max_runs_in_flight=runs_limit,
    max_tokens_in_flight=sum_limit,
    max_queued_runs=runs_limit,
    max_queued_tokens=sum_limit,
    paused=st.booleans(),
)


def _pair(low: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, MAX_MS), st.integers(low, MAX_MS)).map(lambda pair: (min(pair), max(pair)))


def _leases(lease: tuple[int, int], backoff: tuple[int, int], attempts: int) -> Leases:
    return Leases(
        lease_ms=lease[0],
        max_lease_ms=lease[1],
        max_attempts=attempts,
        backoff_ms=backoff[0],
        max_backoff_ms=backoff[1],
    )


@st.composite
def _classes(draw: st.DrawFn, between: BetweenClasses) -> tuple[PriorityClass, ...]:
    listed = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    return tuple(
        PriorityClass(
            name=name,
            default_estimate=draw(tokens),
            weight=draw(st.integers(1, MAX_CLASS_WEIGHT)) if between == "shares" else 1,
            min_share=draw(st.integers(0, 99 // len(listed))) if between == "strict" else 0,
        )
        for name in listed
    )


def _memory(ended_ms: int, ended_runs: int, flows: int, histories: tuple[int, int]) -> Memory:
    return Memory(
        ended_ms=ended_ms,
        ended_runs=ended_runs,
        flows=flows,
        histories=max(histories),
        tenant_histories=min(*histories, MAX_TENANT_HISTORIES),
    )


_without_groups = st.builds(
    Policy,
    name=names,
    quantum=tokens,
    window=st.builds(Window, runs=runs_limit, tokens=sum_limit).filter(lambda window: window != Window(runs=None)),
    default=rules,
    tenants=st.dictionaries(names, rules, max_size=4),
    closed=st.booleans(),
    on_removal=st.sampled_from(["serve", "reject"]),
    groups=st.dictionaries(names, weights, max_size=3),
    limits=st.builds(
        Limits,
        max_queued_runs=runs_limit,
        max_queued_bytes=sum_limit,
        max_run_tokens=st.none() | tokens,
        overload=st.sampled_from(["refuse", "drop_longest"]),
    ),
    estimates=st.builds(
        Estimates,
        source=st.sampled_from(["history", "hint", "max"]),
        prior_runs=st.integers(0, 10**6),
        decay_runs=st.integers(1, 10**6),
        min_charge=tokens,
    ),
    leases=st.builds(_leases, _pair(1), _pair(0), st.integers(1, 1_000)),
    memory=st.builds(
        _memory, st.integers(0, MAX_MS), st.integers(0, MAX_RUNS), counts, histories=st.tuples(counts, counts)
    ),
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Whatever a document can state."""
    policy = draw(_without_groups)
    between: BetweenClasses = draw(st.sampled_from(get_args(BetweenClasses)))
    tenants = dict(policy.tenants)
    for tenant, rules in policy.tenants.items():
        group = draw(st.sampled_from([None, *policy.groups]))
        members = [rules, *(each for each in tenants.values() if each.group == group)]
        if group is not None and sum(each.weight for each in members) <= policy.quantum * policy.groups[group]:
            tenants[tenant] = replace(rules, group=group)
    return replace(policy, between_classes=between, classes=draw(_classes(between)), tenants=tenants)
