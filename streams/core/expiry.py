"""What time does: leases run out, delays end, deadlines pass, ended runs are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import outcomes
from streams.core.records import key_of
from streams.core.runs import RunState

if TYPE_CHECKING:
    from streams.core.state import State


def run_timers(state: State) -> None:
    """Do all that is due. Called after the inputs, so a report that came in time is never overtaken by its lease."""
    now = state.record.now_ms
    for flight in state.leases.pop_due(state.lease_now):
        outcomes.lose(state, flight)
    for run in state.waits.pop_due(now):
        if run.deadline_ms is not None and run.deadline_ms <= now:
            outcomes.expire(state, run)
            continue
        run.state = RunState.QUEUED
        run.flow.queue.put(run)
        if run.deadline_ms is not None:
            state.waits.set(run.deadline_ms, run.position, run)
        state.refresh(run.flow.account)
    state.leases.tidy(len(state.flights))
    state.waits.tidy(state.queued_runs)
    _forget(state)


def _forget(state: State) -> None:
    """Forget the oldest ended runs: those past the stated time, and those above the stated number."""
    memory = state.policy.policy.memory
    pages, ended = state.pages, state.ended
    oldest_ms = state.record.now_ms - memory.ended_ms
    while pages and (pages[0].at_ms < oldest_ms or len(ended) > memory.ended_runs):
        page = pages.popleft()
        ended.difference_update(page.runs)
        state.out.changed[key_of(page)] = None


def next_due(state: State) -> int | None:
    """Return the wall-clock ms at which a step is due even if nothing comes in."""
    if state.more:
        return state.record.now_ms
    lease, wait = state.leases.next_due(), state.waits.next_due()
    if lease is None:
        return wait
    lease += state.record.outage_ms
    return lease if wait is None else min(lease, wait)
