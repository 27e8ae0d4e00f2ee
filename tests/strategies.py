"""Hypothesis strategies shared by the property tests."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

from streams.core.policy import Estimates, Leases, Limits, Memory, Policy, PriorityClass, TenantRules
from tests.builders import make_policy

TENANTS = ("a", "b", "c", "d")
CLASSES = ("high", "mid", "low")
GROUPS = ("g", "h")

ids = st.text("ab/", min_size=1, max_size=2)

# Small numbers meet often, large ones find what only shows when cost / quantum is large.
costs = st.one_of(st.integers(1, 12), st.integers(1, 1_000), st.integers(1, 10**6))
quanta = st.sampled_from((1, 3, 10, 100, 1_000))
weights = st.integers(1, 5)
rarely = st.integers(0, 9).map(lambda draw: draw == 9)
# What refuses or holds back has to be rare, or most histories would be short.


def examples(times: int) -> settings:
    """Return the settings of the profile in use, with so many times its examples: for tests that are fast and deep."""
    default = settings.default
    assert default is not None
    return settings(max_examples=times * default.max_examples)


def tenant_rules() -> st.SearchStrategy[TenantRules]:
    """Rules of a tenant that say something about order: its weight and group, caps of its own, pauses."""
    return st.builds(
        TenantRules,
        group=st.sampled_from((None, None, *GROUPS)),
        weight=weights,
        max_runs_in_flight=st.none() | st.integers(1, 3),
        max_tokens_in_flight=st.none() | st.integers(1, 30),
        paused=rarely,
    )


@st.composite
def order_policies(draw: st.DrawFn, classes: tuple[str, ...] = CLASSES) -> Policy:
    """A policy that differs from another in all that bears on the order: quantum, window, classes, weights, caps."""
    runs = draw(st.none() | st.integers(1, 5))
    tokens = draw(st.integers(1, 60) if runs is None else st.none() | st.integers(1, 60))
    policy = make_policy(
        quantum=draw(quanta),
        runs=runs,
        tokens=tokens,
        rules={tenant: draw(tenant_rules()) for tenant in TENANTS},
    )
    shares = draw(st.booleans())
    return replace(
        policy,
        between_classes="shares" if shares else "strict",
        classes=tuple(
            PriorityClass(
                name=name,
                weight=draw(weights) if shares else 1,
                min_share=0 if shares else draw(st.sampled_from((0, 0, 1, 10, 33))),
            )
            for name in draw(st.permutations(classes))
        ),
        groups={group: draw(weights) for group in GROUPS},
    )


@st.composite
def door_policies(draw: st.DrawFn) -> Policy:
    """A policy with every rule tight enough to be met: limits, memory, leases, classes and tenants that come and go."""
    order = draw(order_policies(CLASSES[: draw(st.integers(1, len(CLASSES)))]))
    runs, tokens = st.sampled_from((None, None, 1, 4)), st.sampled_from((None, None, 200, 2_000))
    tenants = {
        tenant: replace(rules, max_queued_runs=draw(runs), max_queued_tokens=draw(tokens))
        for tenant, rules in order.tenants.items()
        if draw(st.booleans())
    }
    return replace(
        order,
        tenants=tenants,
        default=replace(draw(tenant_rules()), group=None),
        closed=draw(rarely),
        on_removal=draw(st.sampled_from(("serve", "reject"))),
        limits=Limits(
            max_queued_runs=draw(st.sampled_from((None, None, 4, 8))),
            max_queued_bytes=draw(st.sampled_from((None, None, None, 1, 6, 10))),
            overload=draw(st.sampled_from(("refuse", "drop_longest"))),
            max_run_tokens=draw(st.sampled_from((None, None, None, 50_000))),
        ),
        estimates=Estimates(
            source=draw(st.sampled_from(("history", "hint", "max"))),
            prior_runs=draw(st.integers(0, 4)),
            decay_runs=draw(st.integers(1, 8)),
            min_charge=draw(st.integers(1, 3)),
        ),
        leases=Leases(
            lease_ms=draw(st.integers(10, 200)),
            max_lease_ms=200,
            max_attempts=draw(st.integers(1, 3)),
            backoff_ms=draw(st.sampled_from((0, 5, 50))),
            max_backoff_ms=80,
        ),
        memory=Memory(
            ended_ms=draw(st.integers(0, 500)),
            ended_runs=draw(st.integers(0, 5)),
            flows=draw(st.sampled_from((1_000, 1_000, 2, 4))),
            histories=draw(st.integers(2, 5)),
            tenant_histories=draw(st.integers(1, 2)),
        ),
    )
