"""What time does: leases run out, delays end, deadlines pass, ended runs are forgotten.

What else ends in one step without being asked for by name is here too: the runs of removed tenants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core import outcomes
from streams.core.endings import forget_pages
from streams.core.removal import reject_removed
from streams.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.core.state import State


# Leases and deadlines that end something in one step: its transaction and its journal record stay well under the
# broker's limits, however many were filed with one and the same deadline.
MAX_ENDED: Final = 2_000
# Nor more of their payloads and names, by weight (`sizes`): the former are written to the rejected topic.
MAX_ENDED_BYTES: Final = 8 << 20


def run_timers(state: State) -> None:
    """Do what is due. Called after the inputs, so a report that came in time is never overtaken by its lease.

    If not all of it can be done in one step (`MAX_ENDED`, `MAX_ENDED_BYTES`), `state.more` is set. What is past its
    deadline is set aside at once all the same, and removed tenants are barred: so none of it is dispatched, and however
    many are filed with one deadline, nobody else has to wait until all of them have been rejected.
    """
    most_bytes = state.given_up_bytes + MAX_ENDED_BYTES
    for ended, _ in enumerate(_end_what_is_due(state), start=1):
        if ended == MAX_ENDED or state.given_up_bytes >= most_bytes:
            state.more = True
            break
    end_pauses(state)
    state.leases.tidy(len(state.flights))
    state.delays.tidy(state.queued_runs)
    state.deadlines.tidy(state.queued_runs)
    state.overdue.tidy(state.queued_runs)
    forget_pages(state)


def end_pauses(state: State) -> None:
    """Set aside what is past its deadline, and queue what has waited for its time. Nothing ends by it."""
    for run in state.deadlines.pop_due(state.record.now_ms):
        state.set_aside(run)
        state.refresh(run.flow.parent)
    for run in state.delays.pop_due(state.record.now_ms):
        run.state = RunState.QUEUED
        run.flow.queue.put(run)
        state.refresh(run.flow.parent)


def _end_what_is_due(state: State) -> Iterator[None]:
    """End attempts whose lease has run out, runs past their deadline, runs of removed tenants: one at a time."""
    for flight in state.leases.pop_due(state.lease_now):
        outcomes.lose(state, flight)
        yield
    for timers in (state.overdue, state.deadlines):
        for run in timers.pop_due(state.record.now_ms):
            outcomes.expire(state, run)
            yield
    yield from reject_removed(state)


def next_due(state: State) -> int | None:
    """Return the wall-clock ms at which a step is due even if nothing comes in."""
    if state.more or state.removed or state.overdue.next_due() is not None:
        return state.record.now_ms
    lease = state.leases.next_due()
    times = [state.delays.next_due(), state.deadlines.next_due()]
    if lease is not None:
        times.append(lease + state.record.outage_ms)
    return min((time for time in times if time is not None), default=None)
