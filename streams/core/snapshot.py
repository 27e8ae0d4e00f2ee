"""What a person may want to see of a shard: plain frozen records, worked out on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.core import gap
from streams.core.estimator import FP_BITS
from streams.core.records import FlowState
from streams.core.waiting import Line

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.ring import Ring
    from streams.core.state import State

MILLION = 1_000_000
LONGEST = (1 << 63) - 1  # what a message holds of a number


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
    stated_share_ppm: int  # what it earns in a round / what all active flows of the class earn; 0 while not active
    lag: int  # tokens per weight it is owed, by its rounds and its charges (see `gap`); negative: ahead; 0: not active
    ratio_ppm: int | None  # actual / estimate over all its attempts that cost something; None: there are none
    error_p50_ppm: int | None  # |actual - estimate| / estimate of half of its tenant's last runs is at most this
    error_p90_ppm: int | None  # and of nine in ten; None: no run of the tenant is remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassView:
    """A priority class. `gap` and `bound` are tokens per weight; see `streams.core.gap`."""

    class_: str
    place: int  # in the order in which classes are served; 0: first
    weight: int  # counts between classes if they go by shares
    min_share: int  # percent; counts if they go in order
    stated_share_ppm: int  # of the tokens: by weight among the classes with work, or its minimum; 0: no work
    deficit: int  # tokens it is behind that share; negative: ahead
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
    moved_ms: int  # when an attempt last started or ended, or the shard got its owner; 0: never
    stuck: bool  # nothing has moved for longer than a lease, though runs wait: see `waiting.Line.stuck`


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSnapshot:
    """A shard, its classes in the order they are served in, and its flows in order of class and place."""

    shard: ShardView
    classes: tuple[ClassView, ...]
    flows: tuple[FlowView, ...]


def take_snapshot(state: State) -> ShardSnapshot:
    """Look at everything and change nothing. O(flows x log flows)."""
    line = Line(state)
    errors = {name: state.estimator.errors_of(name) for name in state.tenants}
    classes: list[ClassView] = []
    flows: list[FlowView] = []
    for ring in state.rings.values():
        members = sorted(ring.flows.values(), key=lambda flow: flow.place)
        rates = sum(flow.rate for flow in members if flow.state is FlowState.ACTIVE)
        views = [_flow_view(state, flow, rates, line.skip(flow), errors[flow.tenant]) for flow in members]
        classes.append(_class_view(state, ring, len(classes), views))
        flows += views
    return ShardSnapshot(shard=_shard_view(state, line), classes=tuple(classes), flows=tuple(flows))


def _shard_view(state: State, line: Line) -> ShardView:
    record, policy, window = state.record, state.policy, state.window
    return ShardView(
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
        queued_bytes=state.held_bytes,
        known_flows=state.known_flows,
        active_flows=sum(ring.active for ring in state.rings.values()),
        histories=len(state.estimator.histories),
        attempt_ms=record.run_ms_fp >> FP_BITS,
        waiting_for=line.waiting_for(),
        moved_ms=record.moved_ms,
        stuck=line.stuck(),
    )


def _class_view(state: State, ring: Ring, place: int, views: list[FlowView]) -> ClassView:
    record, class_ = ring.record, state.classes.get(ring.record.class_)
    turns = state.turns
    observed = gap.widest(ring.flows.values(), state.policy.policy.quantum)
    return ClassView(
        class_=record.class_,
        place=place,
        weight=class_.weight if class_ is not None else 1,
        min_share=class_.min_share if class_ is not None else 0,
        stated_share_ppm=turns.share_ppm(ring) if turns is not None else 0,
        deficit=turns.behind(ring) if turns is not None else 0,
        round=record.round,
        known_flows=len(views),
        active_flows=ring.active,
        blocked_flows=ring.blocked,
        queued_runs=sum(view.queued_runs for view in views),
        queued_tokens=sum(view.queued_tokens for view in views),
        gap=_shown(observed.gap),
        bound=_shown(observed.bound),
        past_charged=record.past_charged,
        past_dispatched=record.past_dispatched,
        past_ended=record.past_ended,
    )


def _flow_view(state: State, flow: Flow, rates: int, skip: str, errors: tuple[int, int] | None) -> FlowView:
    """Look at a flow. `rates` is what the active flows of its class earn in a round."""
    parent, rules, ring = flow.parent, flow.parent.rules, flow.ring
    head = flow.queue.head()
    active = flow.state is FlowState.ACTIVE
    waits = active and flow is not ring.current
    return FlowView(
        tenant=flow.tenant,
        class_=flow.class_,
        plan=rules.plan,
        group=rules.group,
        weight=rules.weight,
        state=flow.state.name.lower(),
        skip=skip,
        queued_runs=len(flow.queue),
        queued_tokens=flow.queue.tokens,
        flight_runs=parent.flight_runs,
        flight_tokens=parent.flight_tokens,
        deficit=ring.deficit_now(flow),
        rounds_to_go=max(0, flow.eligible - ring.record.round) if waits else 0,
        charged=flow.charged,
        actual=flow.actual,
        dispatched=flow.dispatched,
        ended=flow.ended,
        oldest_submitted_ms=head.submitted_ms if head is not None else None,
        stated_share_ppm=flow.rate * MILLION // rates if active else 0,
        lag=_shown(gap.lag(flow, state.policy.policy.quantum)) if active else 0,
        ratio_ppm=flow.actual * MILLION // flow.settled_estimate if flow.settled_estimate else None,
        error_p50_ppm=errors[0] if errors is not None else None,
        error_p90_ppm=errors[1] if errors is not None else None,
    )


def _shown(tokens: int) -> int:
    """Hold tokens per weight to what a message can: for a member with a millionth of its group's weight, many."""
    return max(-LONGEST, min(tokens, LONGEST))
