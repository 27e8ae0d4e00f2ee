"""Hypothesis strategy for any policy that a document can state."""

from __future__ import annotations

from hypothesis import strategies as st

from streams.core.policy import Estimates, Leases, Limits, Memory, Policy, PriorityClass, TenantRules, Window
from streams.core.policy_fields import MAX_MS, MAX_RUNS, MAX_SUM, MAX_TOKENS, MAX_WEIGHT

# Not surrogates: they are no text in UTF-8. Dots, quotes and brackets come up by themselves.
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
tokens = st.integers(1, MAX_TOKENS)
runs_limit = st.none() | st.integers(1, MAX_RUNS)
sum_limit = st.none() | st.integers(1, MAX_SUM)

rules = st.builds(
    TenantRules,
    plan=st.none() | names,
    weight=st.integers(1, MAX_WEIGHT),
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


policies = st.builds(
    Policy,
    name=names,
    quantum=tokens,
    window=st.builds(Window, runs=runs_limit, tokens=sum_limit).filter(lambda window: window != Window(runs=None)),
    classes=st.lists(
        st.builds(PriorityClass, name=names, default_estimate=tokens),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each.name,
    ).map(tuple),
    default=rules,
    tenants=st.dictionaries(names, rules, max_size=4),
    closed=st.booleans(),
    limits=st.builds(
        Limits,
        max_queued_runs=runs_limit,
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
    memory=st.builds(Memory, ended_ms=st.integers(0, MAX_MS), ended_runs=st.integers(0, MAX_RUNS)),
)
