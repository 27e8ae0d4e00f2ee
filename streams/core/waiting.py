"""Why nothing more starts: the words of a flow's `skip` and a shard's `waiting_for`, and how they are found.

Both lists are closed. What is said depends on the records alone, so a shard that was loaded says the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.records import FlowState
from streams.core.runs import RunState

if TYPE_CHECKING:
    from streams.core.flows import Flow, Tenant
    from streams.core.ring import Ring
    from streams.core.state import State

NOTHING: Final = ""  # nothing waits

# Why the head of a flow has not been dispatched yet.
TURN: Final = "turn"  # its turn has not come
VISIT: Final = "visit"  # it is being served: the step was full, the next one goes on with it
WINDOW_RUNS: Final = "window_runs"  # it is next, and the window has no place for another run
WINDOW_TOKENS: Final = "window_tokens"  # it is next, and the window has no room for its tokens
CLASS: Final = "class"  # another class goes first
CAP_RUNS: Final = "cap_runs"  # its tenant has as many runs in flight as it may
CAP_TOKENS: Final = "cap_tokens"  # its tenant has no room for the head's tokens
PAUSED: Final = "paused"  # its tenant is paused, or removed; of a shard: so are all that have something queued
DELAYED: Final = "delayed"  # all it has waits for its time

SKIPS: Final = (NOTHING, TURN, VISIT, WINDOW_RUNS, WINDOW_TOKENS, CLASS, CAP_RUNS, CAP_TOKENS, PAUSED, DELAYED)

# What has to come before a shard dispatches again.
STEP: Final = "step"  # nothing: the last step was full, the next one is due
CAPS: Final = "caps"  # all that is queued belongs to tenants at their own caps, or paused
TIME: Final = "time"  # all that is queued waits for its time
WORK: Final = "work"  # nothing is queued

WAITS: Final = (STEP, WINDOW_RUNS, WINDOW_TOKENS, CAPS, PAUSED, TIME, WORK)

_MOVES_BY_ITSELF: Final = (STEP, WINDOW_RUNS, WINDOW_TOKENS, CAPS)  # attempts end, and then there is room


class Line:
    """Who is next in a shard, and what it waits for, as of now. O(classes); O(tenants) once a flow has no head."""

    def __init__(self, state: State) -> None:
        """Find the flow whose head is dispatched next if there is room for it."""
        self._state = state
        self._delayed: set[tuple[str, ...]] | None = None
        ring = _next_ring(state)
        self._first = ring.first() if ring is not None else None

    def skip(self, flow: Flow) -> str:
        """Return why the flow's head has not been dispatched: one of `SKIPS`."""
        head = flow.queue.head()
        if head is None:
            if self._delayed is None:
                self._delayed = _delayed(self._state)
            return DELAYED if flow.key in self._delayed else NOTHING
        if flow.state is FlowState.BLOCKED:
            return _cap(flow.parent)
        first = self._first
        assert first is not None, "somebody is active"
        if flow is first:
            return self._room(VISIT)
        return TURN if flow.ring is first.ring else CLASS

    def waiting_for(self) -> str:
        """Return what has to come before the shard dispatches again: one of `WAITS`."""
        state = self._state
        if self._first is not None:
            return self._room(STEP)
        if any(ring.blocked for ring in state.rings.values()):
            waiting = [tenant for tenant in state.tenants.values() if tenant.queued_runs]
            return PAUSED if all(tenant.barred for tenant in waiting) else CAPS
        if state.overdue.next_due() is not None:
            return STEP
        return TIME if state.queued_runs else WORK

    def stuck(self) -> bool:
        """Tell whether something that should have moved has not.

        That is: runs are queued that wait for nothing but attempts to end, and none has started or ended for longer
        than a lease: the longest of those in flight, or the policy's. Attempts that fall silent are given up within
        their lease, so what holds the places is kept alive by heartbeats alone and gets nowhere. (Or it is just slow:
        a shard all of whose runs take longer than their leases looks the same.) The time without an owner doesn't
        count. As of the last step: a shard that makes no steps at all is told by its age.
        """
        state = self._state
        patience = state.policy.policy.leases.lease_ms
        patience = max((flight.lease_ms for flight in state.flights.values()), default=patience)
        quiet = state.record.now_ms - state.record.moved_ms
        return quiet > patience and self.waiting_for() in _MOVES_BY_ITSELF

    def _room(self, there_is: str) -> str:
        """Return what the window lacks for the first in line, or `there_is`."""
        assert self._first is not None
        head = self._first.queue.head()
        assert head is not None, "who is active has work"
        window = self._state.window
        if not window.has_place():
            return WINDOW_RUNS
        return there_is if window.fits(head.estimate) else WINDOW_TOKENS


def _next_ring(state: State) -> Ring | None:
    """Return the class whose turn it is, if anybody may go."""
    if state.turns is None:
        return next((ring for ring in state.rings.values() if ring.active), None)
    turn = state.turns.next()
    return turn[0] if turn is not None else None


def _cap(tenant: Tenant) -> str:
    """Return which of its own rules holds a blocked tenant back."""
    if tenant.barred:
        return PAUSED
    limit = tenant.rules.max_runs_in_flight
    return CAP_RUNS if limit is not None and tenant.flight_runs >= limit else CAP_TOKENS


def _delayed(state: State) -> set[tuple[str, ...]]:
    """Return the keys of the flows that have runs waiting for their time."""
    keys = set()
    for tenant in state.tenants.values():
        if tenant.queued_runs > sum(len(flow.queue) for flow in tenant.flows):
            keys |= {run.flow.key for run in tenant.runs.values() if run.state is RunState.DELAYED}
    return keys
