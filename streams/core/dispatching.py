"""Hand out runs while the window has room: the visits of the sweep, carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core import ledger
from streams.core.effects import Dispatch
from streams.core.runs import IN_FLIGHT, Flight
from streams.core.sizes import weight_of

# Of one step: its transaction and its journal record stay well under the broker's limits.
MAX_DISPATCHES: Final = 2_000
MAX_DISPATCHED_BYTES: Final = 8 << 20  # by weight, see `sizes`

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.ring import Ring
    from streams.core.runs import Run
    from streams.core.state import State


def fill_window(state: State) -> None:
    """Dispatch until the window is full, nobody may go, or the step is large enough (`state.more` tells that).

    Classes go in order, or as `classes` says. The head whose turn it is and that does not fit the token window waits
    for room, and so does everything behind it, in every class: small runs that overtake would starve it.
    """
    turns, window = state.turns, state.window
    if turns is None:
        for ring in state.rings.values():
            while ring.active:
                if not window.has_place() or not _serve(state, ring, class_pays=False):
                    return
        return
    while window.has_place():
        turn = turns.next()
        if turn is None or not _serve(state, turn[0], class_pays=turn[1]):
            return


def _serve(state: State, ring: Ring, *, class_pays: bool) -> bool:
    """Dispatch the run whose turn it is in a class; False: it has to wait for room, or for another step."""
    out, under_way = state.out, ring.current
    flow = ring.next()
    assert flow is not None, "a class with active flows has somebody whose turn it is"
    run = flow.queue.head()
    assert run is not None, "a flow whose turn it is has work"
    room = state.window.fits(run.estimate)
    if not room or len(out.dispatches) == MAX_DISPATCHES or state.dispatched_bytes >= MAX_DISPATCHED_BYTES:
        state.more |= room
        if flow is not under_way:  # a visit that has begun is written, even if nothing can be dispatched in it yet
            out.changed[ring.key] = ring.record
            out.changed[flow.key] = flow
        return False
    if state.turns is not None:
        state.turns.charge(ring, run.estimate, out.changed, pays=class_pays)
    _start(state, flow, run, class_pays=class_pays)
    return True


def _start(state: State, flow: Flow, run: Run, *, class_pays: bool) -> None:
    record, out, ring = state.record, state.out, flow.ring
    record.seq += 1
    run.attempt += 1
    run.tries += 1
    state.dequeue(run, IN_FLIGHT)
    before = flow.deficit
    ledger.charge(flow, run.estimate)
    flow.dispatched += 1
    # Arguments by position here and below: by name they cost twice as much, once for each run.
    flight = Flight(run, flow, record.seq, record.now_ms, record.now_ms - record.outage_ms + run.lease_ms)
    flight.class_pays = class_pays
    state.hold(flight)
    state.dispatched_bytes += weight_of(run)
    if flow.parent.flight_runs > flow.peak:
        flow.peak = flow.parent.flight_runs
    changed = out.changed
    changed[ring.key] = ring.record
    changed[flow.key] = flow
    changed[flight.key] = flight
    out.dispatches.append(
        Dispatch(
            record.seq,
            run.tenant,
            run.run_id,
            run.workflow,
            run.class_,
            run.attempt,
            run.estimate,
            run.lease_ms,
            run.deadline_ms,
            run.body,
            run.submitted_ms,
            ring.record.round,
            before,
            flow.deficit,
        )
    )
    if len(flow.parent.flows) == 1 and flow.group is None:
        ring.refresh(flow)
    else:
        state.refresh(flow.parent)
