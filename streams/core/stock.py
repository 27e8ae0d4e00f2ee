"""Everything that must not be lost when tenants move to other shards, by name, to be held against what has arrived.

A stock is taken of each shard's living state, so it proves what a scheduler will know, not what was written.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streams.core.records import FlightRecord, HistoryRecord, RunRecord, fields_of
from streams.core.runs import RunState

if TYPE_CHECKING:
    from streams.core.flows import Tenant
    from streams.core.records import EndedRecord
    from streams.core.runs import Flight, Run
    from streams.core.state import State

# What is counted, in the order in which it is shown: in runs, attempts, tokens, ids.
QUEUED: Final = "queued runs"
DELAYED: Final = "delayed runs"
OVERDUE: Final = "overdue runs"
RUNNING: Final = "runs in flight"
QUEUES: Final = "queues in order"
ATTEMPTS: Final = "attempts in flight"
CHARGED: Final = "tokens charged"
ACTUAL: Final = "tokens spent"
DISPATCHED: Final = "attempts dispatched"
ENDED: Final = "runs ended"
DEBTS: Final = "tokens of debt"
CREDITS: Final = "tokens of credit"
HISTORIES: Final = "histories"
REMEMBERED: Final = "ended ids remembered"
LOST: Final = "accounts of lost attempts"
FORGOTTEN: Final = "tokens of forgotten flows"

ALL: Final = (
    QUEUED,
    DELAYED,
    OVERDUE,
    RUNNING,
    QUEUES,
    ATTEMPTS,
    CHARGED,
    ACTUAL,
    DISPATCHED,
    ENDED,
    DEBTS,
    CREDITS,
    HISTORIES,
    REMEMBERED,
    LOST,
    FORGOTTEN,
)

_OF_STATE: Final = {
    RunState.QUEUED: QUEUED,
    RunState.DELAYED: DELAYED,
    RunState.OVERDUE: OVERDUE,
    RunState.IN_FLIGHT: RUNNING,
}
_RUN: Final = fields_of(RunRecord)
_FLIGHT: Final = fields_of(FlightRecord)
_FLIGHT_NAMES: Final = tuple(each.name for each in fields(FlightRecord))
_HISTORY: Final = fields_of(HistoryRecord)

_SHOWN: Final = 5

Name = tuple[str, ...]


class Line(NamedTuple):
    """One thing that is counted, before and after."""

    what: str  # one of `ALL`
    before: int
    after: int
    differing: tuple[Name, ...]  # a few of those that are not what they were, by name

    @property
    def equal(self) -> bool:
        """Tell whether every single one is what it was, not only their number."""
        return not self.differing and self.before == self.after


class Stock:
    """What the shards of a deployment hold."""

    def __init__(self) -> None:
        """Begin with no shard."""
        self._held: defaultdict[str, dict[Name, Any]] = defaultdict(dict)

    def add(self, state: State) -> None:
        """Count in what a shard holds. Raises `ValueError` for what another one has counted in."""
        for tenant in state.tenants.values():
            self._add_tenant(tenant)
        for flight in state.flights.values():
            about = _about_flight(flight, state.lease_now)
            self._put(ATTEMPTS, (flight.tenant, flight.run_id, str(flight.attempt)), about)
        for history in state.estimator.histories.values():
            name, workflow, count, mean_fp, _, ratios = _HISTORY(history)
            self._put(HISTORIES, (name, workflow), (count, mean_fp, ratios))
        for page in state.pages:
            self._add_page(page)
        past = self._held[FORGOTTEN]
        for ring in state.rings.values():
            key = (ring.record.class_,)
            past[key] = past.get(key, 0) + ring.record.past_charged

    def compare(self, after: Stock) -> list[Line]:
        """Hold this stock against a later one: a line for each of `ALL`."""
        lines = []
        for what in ALL:
            mine, theirs = self._held[what], after._held[what]
            names = sorted(
                name for name in mine.keys() | theirs.keys() if (mine.get(name) or 0) != (theirs.get(name) or 0)
            )
            lines.append(Line(what, _number(mine), _number(theirs), tuple(names[:_SHOWN])))
        return lines

    def _add_tenant(self, tenant: Tenant) -> None:
        for run in tenant.runs.values():
            self._put(_OF_STATE[run.state], (run.tenant, run.run_id), _about_run(run))
        for flow in tenant.flows:
            name = (flow.class_, flow.tenant)
            own = sorted((run.position, run.run_id) for run in tenant.runs.values() if run.flow is flow)
            self._put(QUEUES, name, [run_id for _, run_id in own])
            balance = flow.ring.deficit_now(flow)
            numbers = (flow.charged, flow.actual, flow.dispatched, flow.ended, max(-balance, 0), max(balance, 0))
            for what, number in zip((CHARGED, ACTUAL, DISPATCHED, ENDED, DEBTS, CREDITS), numbers, strict=True):
                self._put(what, name, number)

    def _add_page(self, page: EndedRecord) -> None:
        for identity in page.runs:
            self._put(REMEMBERED, identity, (page.at_ms,))
        for tenant, run_id, class_, attempt, charged in page.lost:
            self._put(LOST, (tenant, run_id, str(attempt)), (class_, charged))

    def _put(self, what: str, name: Name, value: object) -> None:
        held = self._held[what]
        if name in held and what != REMEMBERED:  # an id that was used again stands on two pages of its shard
            raise ValueError(f"{what}: {name} is in two shards")
        held[name] = value


def _number(held: dict[Name, Any]) -> int:
    summed = (value for value in held.values() if isinstance(value, int))
    return sum(summed) if held and isinstance(next(iter(held.values())), int) else len(held)


def _about_run(run: Run) -> tuple[object, ...]:
    """All there is to say of a run but its position, which is its shard's."""
    tenant, run_id, workflow, class_, _, *rest = _RUN(run)
    return (tenant, run_id, workflow, class_, rest, run.attempt, run.tries, run.ready_ms, run.lost, run.retried)


def _about_flight(flight: Flight, lease_now: int) -> dict[str, object]:
    """All there is to say of an attempt but its number in the shard; of its lease, what is left."""
    about = dict(zip(_FLIGHT_NAMES, _FLIGHT(flight), strict=True))
    return {**about, "seq": None, "expires_ms": flight.expires_ms - lease_now}
