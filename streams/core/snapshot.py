"""What a person may want to see of a shard: plain frozen records, worked out on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    weight: int
    state: str  # idle, active, blocked
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
    known_flows: int
    active_flows: int
    attempt_ms: int  # decayed mean of how long an attempt takes


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSnapshot:
    """A shard and its flows, in order of class and place."""

    shard: ShardView
    flows: tuple[FlowView, ...]


def take_snapshot(state: State) -> ShardSnapshot:
    """Look at everything and change nothing."""
    flows: list[FlowView] = []
    for ring in state.rings.values():
        members = sorted(ring.flows.values(), key=lambda flow: flow.place)
        active_weight = sum(flow.account.rules.weight for flow in members if flow.state is FlowState.ACTIVE)
        flows += [_view(ring, flow, active_weight) for flow in members]
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
        known_flows=len(flows),
        active_flows=sum(ring.active for ring in state.rings.values()),
        attempt_ms=record.run_ms_fp >> 16,
    )
    return ShardSnapshot(shard=shard, flows=tuple(flows))


def _view(ring: Ring, flow: Flow, active_weight: int) -> FlowView:
    account, rules = flow.account, flow.account.rules
    head = flow.queue.head()
    active = flow.state is FlowState.ACTIVE
    waiting = active and flow is not ring.current
    return FlowView(
        tenant=flow.tenant,
        class_=flow.class_,
        plan=rules.plan,
        weight=rules.weight,
        state=flow.state.name.lower(),
        queued_runs=len(flow.queue),
        queued_tokens=flow.queue.tokens,
        flight_runs=account.flight_runs,
        flight_tokens=account.flight_tokens,
        deficit=ring.deficit_now(flow),
        rounds_to_go=max(0, flow.eligible - ring.record.round) if waiting else 0,
        charged=flow.charged,
        actual=flow.actual,
        dispatched=flow.dispatched,
        ended=flow.ended,
        oldest_submitted_ms=head.submitted_ms if head is not None else None,
        stated_share_ppm=rules.weight * MILLION // active_weight if active else 0,
    )
