"""What a person may want to see of a shard: plain frozen records, worked out on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.core import gap, waiting
from streams.core.records import FlowState

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.ring import Ring
    from streams.core.state import State

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """A tenant in a class. Tokens and ms are integers; shares are parts per million."""

    tenant: str
    class_: str
    plan: str | None
    group: str | None
    weight: int
    state: str  # idle, active, blocked
    skip: str  # why its head has not been dispatched: one of `waiting.SKIPS`
    queued_runs: int  # of this flow, without those that wait for their time
    queued_tokens: int
    flight_runs: int  # of the tenant, over its classes
    flight_tokens: int
    deficit: int  # as of now; negative: debt
    rounds_to_go: int  # rounds until its head is served; 0: now, or nothing queued
    charged: int  # since the beginning
    actual: int
    dispatched: int
    ended: int
    oldest_submitted_ms: int | None  # of the head of its queue
    stated_share_ppm: int  # weight / sum of the weights of the class's active flows; 0 while not active
    lag: int  # tokens per weight it is behind what its rounds gave it, since it became active; negative: ahead
    ratio_ppm: int | None  # actual / estimate over all its settled attempts; None: there are none
    error_p50_ppm: int | None  # half of its tenant's last runs cost at most this much of their estimate; None: no runs
    error_p90_ppm: int | None  # and nine in ten


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassView:
    """A priority class. `gap` and `bound` are tokens per weight; see `streams.core.gap`."""

    class_: str
    weight: int  # counts between classes if they go by shares
    min_share: int  # percent; counts if they go in order
    stated_share_ppm: int  # weight / sum of the weights of classes with work now, or the minimum; 0 without work
    deficit: int  # tokens it is behind its share; negative: ahead
    round: int
    known_flows: int
    active_flows: int
    blocked_flows: int
    queued_runs: int  # without those that wait for their time
    queued_tokens: int
    gap: int  # between the two active flows that are furthest apart; 0 if there are no two
    bound: int  # what the gap can't exceed; 0 if there are no two
    past_charged: int  # of flows that have been forgotten, as are the next two
    past_dispatched: int
    past_ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardView:
    """A shard as a whole."""

    shard: int
    shards: int
    epoch: int
    step: int
    now_ms: int
    seq: int
    policy_name: str
    policy_version: int
    quantum: int
    window_runs: int | None
    window_tokens: int | None
    flight_runs: int
    flight_tokens: int
    queued_runs: int
    queued_bytes: int  # payloads of the runs that have not ended
    known_flows: int
    active_flows: int
    histories: int  # (tenant, workflow)s whose costs are remembered
    attempt_ms: int  # decayed mean of how long an attempt takes
    waiting_for: str  # what has to happen before it can dispatch: one of `waiting.WAITS`
    moved_ms: int  # when an attempt last started or ended; 0: never
    stuck: bool  # something that should have moved has not


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSnapshot:
    """A shard, its classes in the order they are served in, and its flows in order of class and place."""

    shard: ShardView
    classes: tuple[ClassView, ...]
    flows: tuple[FlowView, ...]


def take_snapshot(state: State) -> ShardSnapshot:
    """Look at everything and change nothing."""
    classes: list[ClassView] = []
    flows: list[FlowView] = []
    for ring in state.rings.values():
        members = sorted(ring.flows.values(), key=lambda flow: flow.place)
        active_weight = sum(flow.account.rules.weight for flow in members if flow.state is FlowState.ACTIVE)
        views = [_view(ring, flow, active_weight, state.policy.policy.quantum) for flow in members]
        if ring.record.class_ in state.classes or members:
            classes.append(_class_view(state, ring, views))
        flows += views
    record, policy, window = state.record, state.policy, state.window
    shard = ShardView(
        shard=record.shard,
        shards=record.shards,
        epoch=record.epoch,
        step=record.step,
        now_ms=record.now_ms,
        seq=record.seq,
        policy_name=policy.policy.name,
        policy_version=policy.version,
        quantum=policy.policy.quantum,
        window_runs=window.max_runs,
        window_tokens=window.max_tokens,
        flight_runs=window.runs,
        flight_tokens=window.tokens,
        queued_runs=state.queued_runs,
        queued_bytes=sum(len(run.body) for tenant in state.tenants.values() for run in tenant.runs.values()),
        known_flows=len(flows),
        active_flows=sum(ring.active for ring in state.rings.values()),
        histories=len(state.estimator.histories),
        attempt_ms=record.run_ms_fp >> 16,
        waiting_for=waiting.WORK,
        moved_ms=record.moved_ms,
        stuck=False,
    )
    return ShardSnapshot(shard=shard, classes=tuple(classes), flows=tuple(flows))


def _class_view(state: State, ring: Ring, views: list[FlowView]) -> ClassView:
    record, class_ = ring.record, state.classes.get(ring.record.class_)
    observed = gap.widest(ring.flows.values(), state.policy.policy.quantum)
    return ClassView(
        class_=record.class_,
        weight=class_.weight if class_ is not None else 1,
        min_share=class_.min_share if class_ is not None else 0,
        stated_share_ppm=0,
        deficit=0,
        round=record.round,
        known_flows=len(views),
        active_flows=ring.active,
        blocked_flows=sum(view.state == "blocked" for view in views),
        queued_runs=sum(view.queued_runs for view in views),
        queued_tokens=sum(view.queued_tokens for view in views),
        gap=observed.gap,
        bound=observed.bound,
        past_charged=record.past_charged,
        past_dispatched=record.past_dispatched,
        past_ended=record.past_ended,
    )


def _view(ring: Ring, flow: Flow, active_weight: int, quantum: int) -> FlowView:
    account, rules = flow.account, flow.account.rules
    head = flow.queue.head()
    active = flow.state is FlowState.ACTIVE
    waiting_turn = active and flow is not ring.current
    return FlowView(
        tenant=flow.tenant,
        class_=flow.class_,
        plan=rules.plan,
        group=rules.group,
        weight=rules.weight,
        state=flow.state.name.lower(),
        skip=waiting.TURN if waiting_turn else waiting.NOTHING,
        queued_runs=len(flow.queue),
        queued_tokens=flow.queue.tokens,
        flight_runs=account.flight_runs,
        flight_tokens=account.flight_tokens,
        deficit=ring.deficit_now(flow),
        rounds_to_go=max(0, flow.eligible - ring.record.round) if waiting_turn else 0,
        charged=flow.charged,
        actual=flow.actual,
        dispatched=flow.dispatched,
        ended=flow.ended,
        oldest_submitted_ms=head.submitted_ms if head is not None else None,
        stated_share_ppm=rules.weight * MILLION // active_weight if active else 0,
        lag=gap.lag(flow, quantum) if active else 0,
        ratio_ppm=flow.actual * MILLION // flow.settled_estimate if flow.settled_estimate else None,
        error_p50_ppm=None,
        error_p90_ppm=None,
    )
