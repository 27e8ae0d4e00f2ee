"""What a person is shown of a deployment: its tenants side by side, stated share beside observed one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.core.snapshot import ClassView, FlowView, ShardView

if TYPE_CHECKING:
    from streams.wire import Status

Account = tuple[int, str, str | None]  # shard, class, tenant; None: the class's tenants that are forgotten

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRow:
    """A tenant in a class. Shares are between 0 and 1; tokens and ms are whole."""

    tenant: str
    class_: str
    plan: str | None
    group: str | None
    weight: int
    state: str  # idle, active, blocked
    skip: str  # why its head has not been dispatched: one of `streams.core.waiting.SKIPS`
    rounds_to_go: int  # until its head is served; 0: now, or nothing is queued
    stated_share: float | None  # of its shard's active tenants in this class; None: not active
    observed_share: float | None  # of what the class spent on this shard since `since`; None: it spent nothing
    queued_runs: int
    queued_tokens: int
    flight_runs: int
    flight_tokens: int
    deficit: int  # negative: debt
    lag: int  # tokens per weight it is behind what its rounds gave it; negative: ahead
    spent: int  # tokens, since the beginning
    ended: int  # runs, since the beginning
    cost_ratio: float | None  # actual / estimate of all its attempts; None: none has ended
    cost_error_p50: float | None  # of half the tenant's last runs, |actual - estimate| / estimate is at most this
    cost_error_p90: float | None  # and nine in ten
    oldest_wait_ms: int | None  # of the run that waits longest; None: none waits
    shard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """A priority class on a shard. `gap` and `bound` are tokens per weight."""

    class_: str
    shard: int
    place: int  # in the order in which classes are served
    weight: int
    min_share: int  # percent
    stated_share: float | None  # of the shard's classes with work, by weight, or its minimum; None: neither
    observed_share: float | None  # of what the shard spent since `since`; None: it spent nothing
    deficit: int  # tokens it is behind its share; negative: ahead
    round: int
    active_flows: int
    blocked_flows: int
    known_flows: int
    queued_runs: int
    queued_tokens: int
    gap: int  # between the two active tenants that are furthest apart
    bound: int  # what it cannot exceed


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
    queued_bytes: int
    active_flows: int
    known_flows: int
    histories: int
    waiting_for: str  # what has to happen before it can dispatch: one of `streams.core.waiting.WAITS`
    moved_ago_ms: int | None  # since an attempt started or ended; None: none ever did
    stuck: bool  # something that should have moved has not


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A deployment at a moment."""

    at_ms: int
    shards: list[ShardRow]
    classes: list[ClassRow]
    tenants: list[TenantRow]


def spent_so_far(statuses: Iterable[Status]) -> dict[Account, int]:
    """Return the tokens spent since the beginning, by account: what a later `overview` can count from."""
    spent: dict[Account, int] = {}
    for status in statuses:
        match status.view:
            case FlowView() as view:
                spent[status.shard, view.class_, view.tenant] = view.actual
            case ClassView() as view:
                spent[status.shard, view.class_, None] = view.past_charged
    return spent


def overview(
    statuses: Iterable[Status],
    now_ms: int,
    *,
    tenant: str | None = None,
    since: Mapping[Account, int] | None = None,
) -> Overview:
    """Return what was seen as rows: shards by number, classes in the order they are served in, tenants by their queue.

    `since` (from `spent_so_far`) is where observed shares are counted from; None: from the beginning. `tenant`
    leaves out the others, whose spending still counts in the shares.
    """
    seen = list(statuses)
    recent = _recent(spent_so_far(seen), since or {})
    of_class: Counter[tuple[int, str]] = Counter()
    of_shard: Counter[int] = Counter()
    for (shard, class_, _), spent in recent.items():
        of_class[shard, class_] += spent
        of_shard[shard] += spent
    shards: list[ShardRow] = []
    classes: list[ClassRow] = []
    tenants: list[TenantRow] = []
    for status in seen:
        match status.view:
            case ShardView() as view:
                shards.append(_shard_row(view, now_ms))
            case ClassView() as view:
                share = _part(of_class[status.shard, view.class_], of_shard[status.shard])
                classes.append(_class_row(view, status.shard, share))
            case FlowView() as view if tenant is None or view.tenant == tenant:
                spent = recent[status.shard, view.class_, view.tenant]
                share = _part(spent, of_class[status.shard, view.class_])
                tenants.append(_tenant_row(view, status.shard, now_ms, share))
    shards.sort(key=lambda row: row.shard)
    classes.sort(key=lambda row: (row.shard, row.place))
    tenants.sort(key=lambda row: (-row.queued_tokens, row.tenant, row.class_))
    return Overview(at_ms=now_ms, shards=shards, classes=classes, tenants=tenants)


def _recent(now: Mapping[Account, int], earlier: Mapping[Account, int]) -> dict[Account, int]:
    """What was spent in between. A tenant that was forgotten in between has moved into its class's account."""
    return {account: now.get(account, 0) - earlier.get(account, 0) for account in now.keys() | earlier.keys()}


def _part(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


def _of_million(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / _MILLION


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
        queued_bytes=view.queued_bytes,
        active_flows=view.active_flows,
        known_flows=view.known_flows,
        histories=view.histories,
        waiting_for=view.waiting_for,
        moved_ago_ms=max(0, now_ms - view.moved_ms) if view.moved_ms else None,
        stuck=view.stuck,
    )


def _class_row(view: ClassView, shard: int, observed: float | None) -> ClassRow:
    return ClassRow(
        class_=view.class_,
        shard=shard,
        place=view.place,
        weight=view.weight,
        min_share=view.min_share,
        stated_share=_of_million(view.stated_share_ppm or None),
        observed_share=observed,
        deficit=view.deficit,
        round=view.round,
        active_flows=view.active_flows,
        blocked_flows=view.blocked_flows,
        known_flows=view.known_flows,
        queued_runs=view.queued_runs,
        queued_tokens=view.queued_tokens,
        gap=view.gap,
        bound=view.bound,
    )


def _tenant_row(view: FlowView, shard: int, now_ms: int, observed: float | None) -> TenantRow:
    oldest = view.oldest_submitted_ms
    return TenantRow(
        tenant=view.tenant,
        class_=view.class_,
        plan=view.plan,
        group=view.group,
        weight=view.weight,
        state=view.state,
        skip=view.skip,
        rounds_to_go=view.rounds_to_go,
        stated_share=_of_million(view.stated_share_ppm or None),
        observed_share=observed,
        queued_runs=view.queued_runs,
        queued_tokens=view.queued_tokens,
        flight_runs=view.flight_runs,
        flight_tokens=view.flight_tokens,
        deficit=view.deficit,
        lag=view.lag,
        spent=view.actual,
        ended=view.ended,
        cost_ratio=_of_million(view.ratio_ppm),
        cost_error_p50=_of_million(view.error_p50_ppm),
        cost_error_p90=_of_million(view.error_p90_ppm),
        oldest_wait_ms=max(0, now_ms - oldest) if oldest else None,
        shard=shard,
    )
