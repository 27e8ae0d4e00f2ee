"""Short ways to make what the core is told: policies, requests, reports. Everything not named has a plain value."""

from __future__ import annotations

from collections.abc import Mapping

from streams.core.effects import Dispatch
from streams.core.inputs import SUCCEEDED, Cancel, Completion, Submit
from streams.core.policy import Estimates, Leases, Limits, Memory, Policy, PriorityClass, TenantRules, Window
from streams.core.records import FlightRecord

LONG_MS = 10**12  # a lease that no test outlives
HINTS = Estimates(source="hint")  # a run costs what its request says: tests of order want to choose


def make_policy(
    *,
    quantum: int = 100,
    runs: int | None = 4,
    tokens: int | None = None,
    weights: Mapping[str, int] | None = None,
    rules: Mapping[str, TenantRules] | None = None,
    classes: tuple[str, ...] = ("default",),
    default_estimate: int = 1_000,
    estimates: Estimates = HINTS,
    leases: Leases | None = None,
    limits: Limits | None = None,
    memory: Memory | None = None,
    closed: bool = False,
) -> Policy:
    """Return a policy in which a run costs what its request says, and nothing expires unless asked to.

    `rules` wins over `weights` for a tenant named in both.
    """
    named = {tenant: TenantRules(weight=weight) for tenant, weight in (weights or {}).items()}
    return Policy(
        name="test",
        quantum=quantum,
        window=Window(runs=runs, tokens=tokens),
        classes=tuple(PriorityClass(name=name, default_estimate=default_estimate) for name in classes),
        tenants=named | dict(rules or {}),
        closed=closed,
        limits=limits or Limits(),
        estimates=estimates,
        leases=leases
        or Leases(lease_ms=LONG_MS, min_lease_ms=1, max_lease_ms=LONG_MS, max_attempts=1_000, backoff_ms=0),
        memory=memory or Memory(),
    )


def make_submit(
    tenant: str,
    run_id: str,
    *,
    position: int,
    cost: int | None = 100,
    workflow: str = "flow",
    class_: str | None = None,
    max_tokens: int | None = None,
    not_before_ms: int | None = None,
    deadline_ms: int | None = None,
    max_attempts: int | None = None,
    lease_ms: int | None = None,
    submitted_ms: int = 0,
    body: bytes = b"",
) -> Submit:
    """Return a request whose own guess of its cost is `cost` tokens."""
    return Submit(
        position=position,
        tenant=tenant,
        run_id=run_id,
        workflow=workflow,
        class_=class_,
        estimate=cost,
        max_tokens=max_tokens,
        not_before_ms=not_before_ms,
        deadline_ms=deadline_ms,
        max_attempts=max_attempts,
        lease_ms=lease_ms,
        submitted_ms=submitted_ms,
        body=body,
    )


def make_cancel(tenant: str, run_id: str, *, position: int = 0) -> Cancel:
    return Cancel(position=position, tenant=tenant, run_id=run_id)


def make_report(
    dispatch: Dispatch, status: str = SUCCEEDED, tokens: int | None = None, *, retryable: bool = False
) -> Completion:
    """Return what a worker says of the attempt it was handed by `dispatch`."""
    return Completion(
        position=0,
        tenant=dispatch.tenant,
        run_id=dispatch.run_id,
        attempt=dispatch.attempt,
        status=status,
        tokens=tokens,
        retryable=retryable,
        error="boom" if retryable else None,
        worker="w1",
    )


def make_flight(estimate: int, *, tenant: str = "a", workflow: str = "flow") -> FlightRecord:
    """Return an attempt in flight of which nothing has been heard."""
    return FlightRecord(
        tenant=tenant,
        run_id="r",
        class_="default",
        workflow=workflow,
        attempt=1,
        tries=1,
        seq=1,
        dispatched_ms=0,
        estimate=estimate,
        charged=estimate,
        reported=0,
        expires_ms=0,
        lease_ms=0,
    )
