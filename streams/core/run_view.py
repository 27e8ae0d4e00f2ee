"""What a person may want to know of one run and of its place in the line: frozen records, worked out on request.

Where `snapshot` looks at everything, this looks at one run: O(classes), so that it can be asked after every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.core.estimator import FP_BITS
from streams.core.records import FlowState
from streams.core.runs import RunState
from streams.core.waiting import DELAYED, NOTHING, PAUSED, Line

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.policy import TenantRules
    from streams.core.runs import Run
    from streams.core.state import State

OWN: Final = "own"  # an earlier run of the same flow goes first
OVERDUE: Final = "overdue"  # its deadline has passed, and it is about to be rejected

# Where an estimate comes from that has no run of the tenant's workflow behind it.
OF_WORKFLOW: Final = "workflow"  # the workflow's mean over the other tenants of the shard
OF_TENANT: Final = "tenant"  # the tenant's mean over its workflows
OF_CLASS: Final = "class"  # the class's default


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run that has not ended, and what its flow, its tenant and the window look like. Tokens and ms are integers."""

    class_: str
    state: str  # queued, delayed, in_flight, overdue
    wait: str  # why it has not been dispatched: one of `waiting.SKIPS`, `OWN` or `OVERDUE`; "": it has been
    position: int  # its request's offset
    estimate: int
    attempt: int  # number of the last one dispatched; 0: none yet
    ready_ms: int  # it waits for this time if it is delayed
    submitted_ms: int
    round: int  # of its class
    deficit: int  # of its flow, as of now; negative: debt
    rules: TenantRules  # of its tenant
    flight_runs: int  # of its tenant, over its classes
    flight_tokens: int
    window_runs: int | None  # the shard's
    window_tokens: int | None
    shard_flight_runs: int
    shard_flight_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadView:
    """What stands before a run that waits, and how far off its turn is."""

    runs: int  # queued runs of its own flow that go first
    tokens: int  # their estimates
    others_runs: int  # queued in the flows of other tenants of its class, without those that wait for their time
    others_tokens: int
    before_runs: int  # and in the classes that are listed before its own
    before_tokens: int
    rounds: int | None  # until its visit, if nothing else comes; None: its flow earns nothing now (blocked, or delayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView:
    """What an estimate of a (tenant, workflow) rests on. Tokens."""

    source: str  # the policy's: history, hint, max
    count: int  # runs of the tenant's workflow that are remembered; 0: none
    mean: int | None  # what they have cost; None: nothing is remembered
    prior: int  # what is assumed beside them, or in their place
    prior_from: str  # OF_WORKFLOW, OF_TENANT, OF_CLASS
    prior_runs: int  # as many runs as the prior weighs
    min_charge: int


def view_run(state: State, tenant: str, run_id: str) -> RunView | None:
    """Look at a run and change nothing; None if it has ended or is not known. O(classes)."""
    run = _find(state, tenant, run_id)
    if run is None:
        return None
    flow, parent, window = run.flow, run.flow.parent, state.window
    return RunView(
        class_=run.class_,
        state=run.state.name.lower(),
        wait=_wait(state, run),
        position=run.position,
        estimate=run.estimate,
        attempt=run.attempt,
        ready_ms=run.ready_ms,
        submitted_ms=run.submitted_ms,
        round=flow.ring.record.round,
        deficit=flow.ring.deficit_now(flow),
        rules=parent.rules,
        flight_runs=parent.flight_runs,
        flight_tokens=parent.flight_tokens,
        window_runs=window.max_runs,
        window_tokens=window.max_tokens,
        shard_flight_runs=window.runs,
        shard_flight_tokens=window.tokens,
    )


def view_ahead(state: State, tenant: str, run_id: str) -> AheadView | None:
    """Count what stands before a run; None if it is not waiting. O(flows of the shard + queue of its flow)."""
    run = _find(state, tenant, run_id)
    if run is None or run.state is RunState.IN_FLIGHT:
        return None
    ring = run.flow.ring
    own = [each.estimate for each in run.flow.queue if each.position < run.position]
    others = [flow for flow in ring.flows.values() if flow is not run.flow]
    names = list(state.rings)
    before = [state.rings[name] for name in names[: names.index(run.class_)]]
    above = [flow for each in before for flow in each.flows.values()]
    return AheadView(
        runs=len(own),
        tokens=sum(own),
        others_runs=sum(len(flow.queue) for flow in others),
        others_tokens=sum(flow.queue.tokens for flow in others),
        before_runs=sum(len(flow.queue) for flow in above),
        before_tokens=sum(flow.queue.tokens for flow in above),
        rounds=_rounds(run.flow, sum(own) + run.estimate) if run.state is RunState.QUEUED else None,
    )


def view_cost(state: State, tenant: str, workflow: str, class_: str) -> CostView:
    """Return what an estimate would rest on now. `class_` must be one of the policy's."""
    estimator, rules = state.estimator, state.policy.policy.estimates
    of_tenant = estimator.tenants.get(tenant)
    history = of_tenant.histories.get(workflow) if of_tenant is not None else None
    of_workflow = estimator.workflows.get(workflow)
    prior, prior_from = state.classes[class_].default_estimate, OF_CLASS
    if of_workflow is not None:
        prior, prior_from = _tokens(of_workflow.mean_fp()), OF_WORKFLOW
    elif of_tenant is not None:
        prior, prior_from = _tokens(of_tenant.mean_fp()), OF_TENANT
    return CostView(
        source=rules.source,
        count=history.count if history is not None else 0,
        mean=_tokens(history.mean_fp) if history is not None else None,
        prior=prior,
        prior_from=prior_from,
        prior_runs=rules.prior_runs,
        min_charge=rules.min_charge,
    )


def _find(state: State, tenant: str, run_id: str) -> Run | None:
    known = state.tenants.get(tenant)
    return known.runs.get(run_id) if known is not None else None


def _wait(state: State, run: Run) -> str:
    """Return why a run has not been dispatched. What holds its whole flow back goes before its place in it."""
    if run.state is RunState.IN_FLIGHT:
        return NOTHING
    if run.state is RunState.OVERDUE:
        return OVERDUE
    flow = run.flow
    if flow.parent.barred:
        return PAUSED
    if run.state is RunState.DELAYED:
        return DELAYED
    if flow.state is not FlowState.BLOCKED and flow.queue.head() is not run:
        return OWN
    return Line(state).skip(flow)


def _rounds(flow: Flow, cost: int) -> int | None:
    """Return the rounds until the flow's deficit covers `cost` tokens; see `Ring` for the formula."""
    if flow.state is not FlowState.ACTIVE:
        return None
    ring = flow.ring
    visits = max(0, -((flow.deficit + flow.extra - cost) // flow.rate))
    if flow is ring.current:
        return visits
    visits = max(1, visits) + (flow.half_visit and visits > 0)
    return max(flow.accrued + visits, ring.passed(flow) + 1) - ring.record.round


def _tokens(fixed_point: int) -> int:
    return (fixed_point + (1 << FP_BITS >> 1)) >> FP_BITS
