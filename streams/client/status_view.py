"""What a person is shown of a deployment: its tenants side by side, stated share beside observed one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.core.snapshot import FlowView, ShardView

if TYPE_CHECKING:
    from streams.wire import Status

FlowKey = tuple[int, str, str]  # shard, class, tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRow:
    """A tenant in a class. Shares are between 0 and 1; tokens and ms are whole."""

    tenant: str
    class_: str
    plan: str | None
    weight: int
    state: str  # idle, active, blocked
    stated_share: float | None  # of its shard's active tenants in this class; None: not active
    observed_share: float | None  # of what the class spent on this shard since `since`; None: it spent nothing
    queued_runs: int
    queued_tokens: int
    flight_runs: int
    flight_tokens: int
    deficit: int  # negative: debt
    spent: int  # tokens, since the beginning
    ended: int  # runs, since the beginning
    oldest_wait_ms: int | None  # of the run that waits longest; None: none waits
    shard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """A shard as a whole."""

    shard: int
    age_ms: int  # since its last step; an idle shard makes none
    step: int
    epoch: int
    policy: str
    policy_version: int
    window_runs: int | None
    window_tokens: int | None
    flight_runs: int
    flight_tokens: int
    queued_runs: int
    active_flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A deployment at a moment."""

    at_ms: int
    shards: list[ShardRow]
    tenants: list[TenantRow]


def spent_so_far(statuses: Iterable[Status]) -> dict[FlowKey, int]:
    """Return the tokens each flow has spent since the beginning: what a later `overview` can count from."""
    return {_key(status, view): view.actual for status in statuses if isinstance(view := status.view, FlowView)}


def overview(
    statuses: Iterable[Status],
    now_ms: int,
    *,
    tenant: str | None = None,
    since: Mapping[FlowKey, int] | None = None,
) -> Overview:
    """Return what was seen as rows: shards by number, tenants by what they have queued and then by name.

    `since` (from `spent_so_far`) is where observed shares are counted from; None: from the beginning. `tenant`
    leaves out the others, whose spending still counts in the shares.
    """
    seen = list(statuses)
    earlier = since or {}
    recent = {key: spent - earlier.get(key, 0) for key, spent in spent_so_far(seen).items()}
    sums: Counter[tuple[int, str]] = Counter()
    for (shard, class_, _), spent in recent.items():
        sums[shard, class_] += spent
    shards: list[ShardRow] = []
    tenants: list[TenantRow] = []
    for status in seen:
        match status.view:
            case ShardView() as view:
                shards.append(_shard_row(view, now_ms))
            case FlowView() as view if tenant is None or view.tenant == tenant:
                key = _key(status, view)
                total = sums[status.shard, view.class_]
                tenants.append(_tenant_row(view, status.shard, now_ms, recent[key] / total if total > 0 else None))
    shards.sort(key=lambda row: row.shard)
    tenants.sort(key=lambda row: (-row.queued_tokens, row.tenant, row.class_))
    return Overview(at_ms=now_ms, shards=shards, tenants=tenants)


def _key(status: Status, view: FlowView) -> FlowKey:
    return status.shard, view.class_, view.tenant


def _shard_row(view: ShardView, now_ms: int) -> ShardRow:
    return ShardRow(
        shard=view.shard,
        age_ms=max(0, now_ms - view.now_ms),
        step=view.step,
        epoch=view.epoch,
        policy=view.policy_name,
        policy_version=view.policy_version,
        window_runs=view.window_runs,
        window_tokens=view.window_tokens,
        flight_runs=view.flight_runs,
        flight_tokens=view.flight_tokens,
        queued_runs=view.queued_runs,
        active_flows=view.active_flows,
    )


def _tenant_row(view: FlowView, shard: int, now_ms: int, observed: float | None) -> TenantRow:
    oldest = view.oldest_submitted_ms
    return TenantRow(
        tenant=view.tenant,
        class_=view.class_,
        plan=view.plan,
        weight=view.weight,
        state=view.state,
        stated_share=view.stated_share_ppm / 1_000_000 if view.stated_share_ppm else None,
        observed_share=observed,
        queued_runs=view.queued_runs,
        queued_tokens=view.queued_tokens,
        flight_runs=view.flight_runs,
        flight_tokens=view.flight_tokens,
        deficit=view.deficit,
        spent=view.actual,
        ended=view.ended,
        oldest_wait_ms=max(0, now_ms - oldest) if oldest else None,
        shard=shard,
    )
