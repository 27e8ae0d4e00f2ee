"""The policy of a scenario: one class, one window in runs, weights."""

from __future__ import annotations

from collections.abc import Mapping

from streams.core.policy import DEFAULT_CLASS, Estimates, Policy, PriorityClass, TenantRules, Window


def plain_policy(
    name: str,
    slots: int,
    *,
    quantum: int,
    estimate: int,
    tenants: Mapping[str, TenantRules],
    estimates: Estimates | None = None,
) -> Policy:
    """Return a policy whose window is `slots` runs. `estimate`: tokens assumed where nothing is known yet."""
    return Policy(
        name=name,
        quantum=quantum,
        window=Window(runs=slots),
        classes=(PriorityClass(name=DEFAULT_CLASS, default_estimate=estimate),),
        tenants=dict(tenants),
        estimates=estimates or Estimates(),
    )
