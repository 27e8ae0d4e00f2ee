"""From rows to a living shard, and back: the records survive, everything else is worked out again."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from streams.core.estimator import Estimator
from streams.core.policy import Policy
from streams.core.records import (
    EndedRecord,
    FlightRecord,
    FlowRecord,
    FlowState,
    HistoryRecord,
    PolicyRecord,
    Record,
    RetryRecord,
    RingRecord,
    RunRecord,
    ShardRecord,
    key_of,
)
from streams.core.removal import find_removed
from streams.core.ring import Ring
from streams.core.runs import Flight, Run, RunState
from streams.core.state import BUILT_IN, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streams.core.flows import Flow

Kind = TypeVar("Kind", bound=Record)
_POSITION: Final = attrgetter("position")


def records_of(state: State) -> Iterator[Record]:
    """Yield every record that has a row, in an order that depends on the records alone."""
    if state.record.step or state.record.now_ms:  # one that was moved has a time, and no step yet
        yield state.record
    if state.policy.version != BUILT_IN:
        yield state.policy
    flows = [flow for ring in state.rings.values() for flow in ring.flows.values()]
    runs = [run for tenant in state.tenants.values() for run in tenant.runs.values()]
    retries = [run.retry_record() for run in runs if run.retried]
    rings = [ring.record for ring in state.rings.values() if ring.record.next_place]  # its first flow writes it
    for group in (rings, flows, runs, retries, state.flights.values(), state.estimator.histories.values()):
        yield from sorted(group, key=key_of)
    yield from state.pages


def restore(shard: int, shards: int, records: Iterable[Record]) -> State:
    """Build the state from its records, given in any order.

    Raises:
        ValueError: the records belong to another shard, or one of them needs a row that is not there.
    """
    by_kind = _Sorted(records)
    own = by_kind.one(ShardRecord) or ShardRecord(shard=shard, shards=shards)
    if (own.shard, own.shards) != (shard, shards):
        message = f"the rows are those of shard {own.shard} of {own.shards}, not of shard {shard} of {shards}"
        raise ValueError(message)
    state = State(own, by_kind.one(PolicyRecord) or PolicyRecord(version=BUILT_IN, policy=Policy()))
    rings = {ring.class_: Ring(ring) for ring in sorted(by_kind.all(RingRecord), key=key_of)}
    state.rings |= rings
    state.adopt_policy()
    state.estimator = Estimator(sorted(by_kind.all(HistoryRecord), key=key_of))
    for record in sorted(by_kind.all(FlowRecord), key=lambda each: (each.class_, each.place)):
        if record.class_ not in rings:
            message = f"flow {record.tenant!r} is in class {record.class_!r}, whose ring has no row"
            raise ValueError(message)
        state.add_flow(record)
    _restore_runs(state, by_kind)
    for page in sorted(by_kind.all(EndedRecord), key=lambda each: each.step):
        state.pages.append(page)
        state.ended.update(dict.fromkeys(page.runs, page))
        for tenant, run_id, class_, attempt, charged in page.lost:
            state.lost.open(_flow_of(state, tenant, class_, run_id), page, run_id, attempt, charged)
    find_removed(state)
    for ring in rings.values():
        for flow in ring.flows.values():
            if flow.state is FlowState.ACTIVE:
                ring.restore(flow)
    return state


class _Sorted:
    """Records by kind."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._kinds: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            self._kinds[type(record).__name__].append(record)

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Return all of a kind, the living forms of it included."""
        names = [kind.__name__, *(living.__name__ for living in kind.__subclasses__())]
        return [record for name in names for record in self._kinds[name] if isinstance(record, kind)]

    def forget(self, kind: type[Record]) -> None:
        """Drop what was read, and not a living form of it: whoever asked for it frees one after the other."""
        self._kinds.pop(kind.__name__, None)

    def one(self, kind: type[Kind]) -> Kind | None:
        """Return the only one of a kind, if there is one."""
        found = self.all(kind)
        return found[0] if found else None


def _restore_runs(state: State, by_kind: _Sorted) -> None:
    flights = sorted(by_kind.all(FlightRecord), key=lambda each: each.seq)
    current = {(each.tenant, each.run_id): each for each in flights if not each.revoked}
    retries = {(each.tenant, each.run_id): each for each in by_kind.all(RetryRecord)}
    records = sorted(by_kind.all(RunRecord), key=_POSITION, reverse=True)
    by_kind.forget(RunRecord)
    workflows: dict[str, str] = {}
    while records:  # each is dropped once it lives: a million runs are not in memory twice
        record = records.pop()
        identity = (record.tenant, record.run_id)
        run = Run.adopt(record, _flow_of(state, record.tenant, record.class_, record.run_id))
        run.workflow = workflows.setdefault(run.workflow, run.workflow)  # each row has brought its own copy
        retry, flight = retries.pop(identity, None), current.pop(identity, None)
        if retry is not None:
            run.resume(retry)
        state.hold_run(run)
        if flight is not None:
            run.attempt, run.tries, run.state = flight.attempt, flight.tries, RunState.IN_FLIGHT
        else:
            state.enqueue(run)
    for overdue in state.deadlines.pop_due(state.record.now_ms):
        state.set_aside(overdue)
    for tenant, run_id in (*retries, *current):
        message = f"run {run_id!r} of tenant {tenant!r} has attempts but no row of its own"
        raise ValueError(message)
    for held in flights:
        state.hold(Flight.adopt(held, _flow_of(state, held.tenant, held.class_, held.run_id)))


def _flow_of(state: State, name: str, class_: str, run_id: str) -> Flow:
    tenant = state.tenants.get(name)
    for flow in tenant.flows if tenant is not None else ():
        if flow.class_ == class_:
            return flow
    message = f"run {run_id!r} of tenant {name!r} belongs to a flow that has no row"
    raise ValueError(message)
