"""May this run come in? All reasons to say no, in one place, and the yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import counts, outcomes, overload, reasons
from streams.core.estimator import FP_BITS
from streams.core.forgetting import make_room
from streams.core.runs import Run

if TYPE_CHECKING:
    from streams.core.flows import Flow, Tenant
    from streams.core.inputs import Submit
    from streams.core.policy import Policy
    from streams.core.state import State


def admit(state: State, submit: Submit) -> None:
    """Queue the run, or refuse it with a reason; a refusal changes nothing else."""
    policy = state.policy.policy
    class_ = state.classes.get(submit.class_) if submit.class_ is not None else policy.classes[0]
    if class_ is None:
        _refuse(state, submit, reasons.UNKNOWN_CLASS, f"class {submit.class_!r} is not in policy {policy.name!r}")
        return
    if policy.closed and submit.tenant not in policy.tenants:
        _refuse(state, submit, reasons.UNKNOWN_TENANT, f"tenant {submit.tenant!r} is not in policy {policy.name!r}")
        return
    tenant = state.tenants.get(submit.tenant)
    identity = (submit.tenant, submit.run_id)
    known = tenant is not None and submit.run_id in tenant.runs
    # A revoked attempt outlives the memory of its run; a new run's attempts must not be mistaken for it.
    if known or identity in state.ended or identity in state.revoked:
        where = "not ended yet" if known else "ended lately"
        _refuse(state, submit, reasons.DUPLICATE, f"run_id {submit.run_id!r} of tenant {submit.tenant!r} has {where}")
        return
    now = state.record.now_ms
    if submit.deadline_ms is not None and submit.deadline_ms <= now:
        detail = f"deadline {submit.deadline_ms} is past at {now}"
        _refuse(state, submit, reasons.DEADLINE_PASSED, detail, limit=submit.deadline_ms, value=now)
        return
    estimate = state.estimator.estimate(submit, class_.default_estimate, policy.estimates)
    if _over_limit(state, submit, tenant, estimate, policy) or _overloaded(state, submit, policy):
        return
    flow = tenant.flow(class_.name) if tenant is not None else None
    if flow is None:
        if not make_room(state):
            _refuse_unknown(state, submit, policy)
            return
        flow = state.new_flow(class_.name, submit.tenant)
    _accept(state, submit, flow, estimate, policy)
    limits = policy.limits
    if limits.max_queued_runs is not None and state.queued_runs > limits.max_queued_runs:
        _drop_runs(state, limits.max_queued_runs)
    if limits.max_queued_bytes is not None and state.held_bytes > limits.max_queued_bytes:
        _drop_bytes(state, limits.max_queued_bytes)


def _drop_runs(state: State, limit: int) -> None:
    """Let the longest backlogs, in tokens per weight, give way until no more than `limit` runs wait."""
    while state.queued_runs > limit and overload.may_drop(state):
        backlog = state.queued_runs
        outcomes.give_way(state, overload.longest_backlog(state), limit, backlog, _retry_after(state, limit))


def _drop_bytes(state: State, limit: int) -> None:
    """Let the heaviest backlogs, in bytes per weight, give way until no more than `limit` bytes are held.

    What is in flight is held too and cannot give way, so the newcomer itself may have to.
    """
    while state.held_bytes > limit and state.queued_runs and overload.may_drop(state):
        held = state.held_bytes
        outcomes.give_way(state, overload.heaviest_backlog(state), limit, held, _retry_after(state, state.queued_runs))


def _over_limit(state: State, submit: Submit, tenant: Tenant | None, estimate: int, policy: Policy) -> bool:
    """Refuse a run that is too large, or above a limit of its tenant; tell whether it was refused."""
    limit = policy.limits.max_queued_bytes
    if limit is not None and len(submit.body) > limit:
        size = len(submit.body)
        detail = f"the payload of {size} bytes is above what a shard may hold, {limit}"
        _refuse(state, submit, reasons.TOO_LARGE, detail, limit=limit, value=size)
        return True
    limit = policy.limits.max_run_tokens
    if limit is not None and estimate > limit:
        detail = f"the estimate of {estimate} tokens is above the largest run allowed, {limit}"
        _refuse(state, submit, reasons.TOO_LARGE, detail, limit=limit, value=estimate)
        return True
    rules = tenant.rules if tenant is not None else policy.rules_for(submit.tenant)
    runs = tenant.queued_runs if tenant is not None else 0
    tokens = tenant.queued_tokens if tenant is not None else 0
    if rules.paused:
        _refuse(state, submit, reasons.TENANT_PAUSED, f"tenant {submit.tenant!r} is paused")
        return True
    limit = rules.max_queued_runs
    if limit is not None and runs >= limit:
        detail = f"tenant {submit.tenant!r} has {runs} runs queued, its limit is {limit}"
        _refuse_for_now(state, submit, reasons.QUEUE_FULL, detail, limit=limit, value=runs, queued=runs)
        return True
    limit = rules.max_queued_tokens
    if limit is not None and tokens + estimate > limit:
        detail = f"tenant {submit.tenant!r} has {tokens} tokens queued; {estimate} more pass its limit {limit}"
        _refuse_for_now(state, submit, reasons.QUEUE_FULL, detail, limit=limit, value=tokens, queued=runs)
        return True
    return False


def _overloaded(state: State, submit: Submit, policy: Policy) -> bool:
    """Refuse a run for which the shard has no room, unless others give way for it; tell whether it was refused."""
    limits, backlog, held = policy.limits, state.queued_runs, state.held_bytes
    if limits.overload == "drop_longest" and overload.may_drop(state):
        return False
    limit = limits.max_queued_runs
    if limit is not None and backlog >= limit:
        detail = f"the shard has {backlog} runs queued, its limit is {limit}"
        _refuse_for_now(state, submit, reasons.OVERLOADED, detail, limit=limit, value=backlog, queued=backlog)
        return True
    limit, size = limits.max_queued_bytes, len(submit.body)
    if limit is not None and held + size > limit:
        detail = f"the shard holds {held} bytes of runs; {size} more pass its limit {limit}"
        _refuse_for_now(state, submit, reasons.OVERLOADED, detail, limit=limit, value=held, queued=backlog)
        return True
    return False


def _refuse_unknown(state: State, submit: Submit, policy: Policy) -> None:
    """Refuse a tenant that the shard has no memory left to know."""
    flows, limit = state.known_flows, policy.memory.flows
    detail = f"the shard knows {flows} tenants (each class counts), its limit is {limit}, and none can be forgotten"
    _refuse_for_now(state, submit, reasons.OVERLOADED, detail, limit=limit, value=flows, queued=state.queued_runs)


def _retry_after(state: State, queued: int) -> int:
    """Estimate, in ms, when a tenth of `queued` will have been served: mean time of an attempt over the places."""
    places = state.window.max_runs or max(1, state.window.runs)
    run_ms = state.record.run_ms_fp >> FP_BITS
    return max(1_000, run_ms * -(-queued // 10) // places)


def _accept(state: State, submit: Submit, flow: Flow, estimate: int, policy: Policy) -> None:
    out, leases = state.out, policy.leases
    lease_ms = leases.lease_ms
    if submit.lease_ms is not None:
        lease_ms = max(submit.lease_ms, min(leases.min_lease_ms, lease_ms))
    if lease_ms > leases.max_lease_ms:
        lease_ms = leases.max_lease_ms
    run = Run(submit, flow, estimate, submit.max_attempts or leases.max_attempts, lease_ms)
    state.hold_run(run)
    out.changed[run.key] = run
    out.counts[counts.ACCEPTED] += 1
    first = not flow.queue
    state.enqueue(run)
    if first:
        flow.left = 0  # it is at rest no more
        out.changed[flow.key] = flow
        state.refresh(flow.parent)


def _refuse_for_now(
    state: State, submit: Submit, reason: str, detail: str, *, limit: int, value: int, queued: int
) -> None:
    """Refuse a run that may come in later: when a tenth of `queued` runs have been served."""
    retry_after_ms = _retry_after(state, queued)
    _refuse(state, submit, reason, detail, limit=limit, value=value, retry_after_ms=retry_after_ms)


def _refuse(
    state: State,
    submit: Submit,
    reason: str,
    detail: str,
    *,
    limit: int | None = None,
    value: int | None = None,
    retry_after_ms: int | None = None,
) -> None:
    state.out.counts[counts.REFUSED] += 1
    state.out.counts[f"{counts.REFUSED}.{reason}"] += 1
    state.reject(submit, reason, detail, limit=limit, value=value, retry_after_ms=retry_after_ms)
