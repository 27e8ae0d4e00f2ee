"""Another number of shards: what the shards of a deployment know becomes what more, or fewer, new ones know.

A tenant moves as a whole, so all that is his stays together: runs, attempts, deficits, accounts, histories, ended ids.
What belongs to a shard is made anew. Nothing is decided here: no run starts, ends, or changes its place.

One moment    The old shards' last steps were at different times and may have been under different policies. So each is
              brought to the time of the latest one and to the policy given, as a step would, but for what a step ends
              or starts. Leases stand still meanwhile, as they do while a shard has no owner.
Numbers       FIFO places, sequence numbers and the steps of pages are below those that the new shard will give: it
              counts its inputs from 0 and its steps and dispatches from 1, so these go up to -1, 0 and 0.
Rings         see `rejoining`.
Classes       A class takes what it is ahead of its share, or behind, along with those of its flows that have work, in
              equal parts, so that its sum over the shards stays.
Memory        What is forgotten in order of use keeps that order, counted back from the last use of its shard.

The same records, policy and number of shards give the same records, whatever order the old ones come in.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streams.core.expiry import end_pauses
from streams.core.inputs import SetPolicy
from streams.core.loading import restore
from streams.core.policy_change import set_policy
from streams.core.records import (
    EndedRecord,
    FlightRecord,
    HistoryRecord,
    PolicyRecord,
    RetryRecord,
    RingRecord,
    RunRecord,
    ShardRecord,
    key_of,
)
from streams.core.rejoining import Joiner, join, leads, leave
from streams.core.state import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streams.core.records import FlowRecord, Record
    from streams.core.state import State

    Home = Callable[[str, int], int]  # the shard of a tenant among so many
    Order = tuple[int, int]  # what sorts the records of several shards as they were in each; then the shard


@dataclass(slots=True)
class _Part:
    """What a new shard is given by the old ones, each with what tells its order."""

    joiners: list[Joiner] = field(default_factory=list)
    runs: list[tuple[Order, RunRecord]] = field(default_factory=list)
    retries: list[RetryRecord] = field(default_factory=list)
    flights: list[tuple[tuple[int, int, int], FlightRecord]] = field(default_factory=list)
    histories: list[tuple[Order, HistoryRecord]] = field(default_factory=list)
    pages: list[tuple[tuple[int, int, int], EndedRecord]] = field(default_factory=list)
    leads: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # by class
    # What it is behind where it has nothing queued: lost when it has work again, but late bills are set off against it.
    credits: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    past: list[RingRecord] = field(default_factory=list)  # the sums of whom it was decided to forget


def reshard(old: Sequence[Sequence[Record]], shards: int, policy: PolicyRecord, home: Home) -> list[list[Record]]:
    """Return the records of each of `shards` new shards, sorted by key. `old` are those of each old one, in order.

    Postconditions: each new shard loads; every run, attempt, account and id is in exactly one of them, that of its
    tenant's home; the runs of a flow are in the order they were in; sums over the shards are what they were, at the
    moment described above. A new shard has taken no step, and `policy` is in force in it.

    Raises:
        ValueError: the records of an old shard contradict each other, or a tenant is not at home there.
    """
    now_ms = last_step_ms(old)
    parts = [_Part() for _ in range(shards)]
    shard_records = []
    for shard, records in enumerate(old):
        _check_homes(records, shard, len(old), home)
        state = brought_up(records, shard, len(old), policy, now_ms)
        shard_records.append(state.record)
        _give_rings(state, parts, lambda tenant: home(tenant, shards))
        _give_records(records, state, parts, lambda tenant: home(tenant, shards))
    about = _common(shard_records, now_ms)
    return [_finish(part, replace(about, shard=shard, shards=shards), policy) for shard, part in enumerate(parts)]


def last_step_ms(old: Iterable[Iterable[Record]]) -> int:
    """Return the time of the latest step of all shards, ms; 0 if there was none."""
    return max((each.now_ms for records in old for each in records if isinstance(each, ShardRecord)), default=0)


def brought_up(records: Iterable[Record], shard: int, shards: int, policy: PolicyRecord, now_ms: int) -> State:
    """Return an old shard as it is at `now_ms`, not before its last step, under `policy`; `records` are left alone.

    What has waited for its time by then is queued, what is past its deadline is set aside. All rounds are booked.
    Raises `ValueError` as `restore` does.
    """
    changing = (ShardRecord, RingRecord)  # the only ones that a loaded shard does not copy and this one changes
    state = restore(shard, shards, [replace(each) if isinstance(each, changing) else each for each in records])
    record = state.record
    if state.policy.policy != policy.policy:
        set_policy(state, SetPolicy(state.policy.version + 1, policy.policy))
    record.outage_ms += now_ms - record.now_ms
    record.now_ms = now_ms
    end_pauses(state)
    if state.turns is not None:
        state.turns.welcome(state.out.changed)
    for ring in state.rings.values():
        for flow in ring.flows.values():
            ring.catch_up(flow)
    return state


def _check_homes(records: Iterable[Record], shard: int, shards: int, home: Home) -> None:
    for record in records:
        tenant = getattr(record, "tenant", None)
        if tenant is not None and home(tenant, shards) != shard:
            raise ValueError(f"shard {shard} has rows of tenant {tenant!r}, whose shard is {home(tenant, shards)}")


def _give_rings(state: State, parts: Sequence[_Part], home: Callable[[str], int]) -> None:
    """Let the flows of a shard leave for their new shards, and with them what their classes are ahead or behind."""
    shard = state.record.shard
    elsewhere = shard % len(parts)  # for what belongs to no tenant
    for name, ring in state.rings.items():
        if not ring.record.next_place:
            continue
        for joiner in leave(ring, state.record):
            parts[home(joiner.record.tenant)].joiners.append(joiner)
        parts[elsewhere].past.append(ring.record)
        flows = list(ring.flows.values())
        carriers = [home(flow.tenant) for flow in flows if flow.state] or [home(flow.tenant) for flow in flows]
        carriers = sorted(carriers) or [elsewhere]
        idle = not ring.active and not ring.blocked
        for number, lead in zip(carriers, leads(state, ring, len(carriers)), strict=True):
            (parts[number].credits if idle and lead < 0 else parts[number].leads)[name] += lead


def _give_records(records: Iterable[Record], state: State, parts: Sequence[_Part], home: Callable[[str], int]) -> None:
    """Give each tenant's new shard what is the tenant's, beside its flows."""
    shard, uses = state.record.shard, state.record.uses
    for record in records:
        if isinstance(record, RunRecord):
            parts[home(record.tenant)].runs.append(((record.position, shard), record))
        elif isinstance(record, RetryRecord):
            parts[home(record.tenant)].retries.append(record)
        elif isinstance(record, FlightRecord):
            # A new shard's lease clock begins as the wall clock, which is now.
            moved = replace(record, expires_ms=record.expires_ms + state.record.outage_ms)
            parts[home(record.tenant)].flights.append(((record.dispatched_ms, shard, record.seq), moved))
        elif isinstance(record, HistoryRecord):
            parts[home(record.tenant)].histories.append(((record.last_use - uses, shard), record))
        elif isinstance(record, EndedRecord):
            _give_page(record, shard, parts, home)


def _give_page(page: EndedRecord, shard: int, parts: Sequence[_Part], home: Callable[[str], int]) -> None:
    """Split a page of ended runs by tenant. What was lost of a run goes where its id goes."""
    split = [EndedRecord(step=page.step, at_ms=page.at_ms, runs=[]) for _ in parts]
    for identity in page.runs:
        split[home(identity[0])].runs.append(identity)
    for account in page.lost:
        split[home(account[0])].lost.append(account)
    for part, own in zip(parts, split, strict=True):
        if own.runs:
            part.pages.append(((page.at_ms, shard, page.step), own))


def _common(old: Sequence[ShardRecord], now_ms: int) -> ShardRecord:
    """Return what all new shards begin with."""
    attempts = [record.run_ms_fp for record in old if record.run_ms_fp]
    return ShardRecord(
        shard=0,
        shards=0,
        now_ms=now_ms,
        run_ms_fp=sum(attempts) // len(attempts) if attempts else 0,
        moved_ms=max((record.moved_ms for record in old), default=0),
    )


def _finish(part: _Part, about: ShardRecord, policy: PolicyRecord) -> list[Record]:
    """Number anew what a new shard was given, and return all its records."""
    working = {joiner.record.class_ for joiner in part.joiners if joiner.record.state}
    for name, credit in part.credits.items():
        if name not in working:
            part.leads[name] += credit
    rings, flows = join(part.joiners, part.leads, part.past, policy.policy)
    histories = [(order, replace(record)) for order, record in part.histories]
    used: list[tuple[Order, FlowRecord | HistoryRecord]] = [
        *(((joiner.use, joiner.shard), joiner.record) for joiner in part.joiners if joiner.record.left),
        *histories,
    ]
    for number, (_, record) in enumerate(sorted(used, key=_order), start=1):
        if isinstance(record, HistoryRecord):
            record.last_use = number
        else:
            record.left = number
    runs = [run for _, run in sorted(part.runs, key=_order)]
    flights = [flight for _, flight in sorted(part.flights, key=_order)]
    pages = [page for _, page in sorted(part.pages, key=_order)]
    records: list[Record] = [
        replace(about, uses=len(used)),
        *rings,
        *flows,
        *(replace(run, position=number - len(runs)) for number, run in enumerate(runs)),
        *part.retries,
        *(replace(flight, seq=number - len(flights)) for number, flight in enumerate(flights, start=1)),
        *(history for _, history in histories),
        *(replace(page, step=number - len(pages)) for number, page in enumerate(pages, start=1)),
    ]
    if policy.version != BUILT_IN:
        records.append(policy)
    return sorted(records, key=key_of)


def _order(given: tuple[Any, object]) -> Any:
    return given[0]
