"""How a run ends for good, and what is remembered of it: pages of ids, one for each step in which runs have ended.

They tell a producer's late retry from a new run, and keep the accounts of lost attempts open (`lost`). For how long,
and how many at most, `memory` in the policy says; the oldest page goes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.records import EndedRecord, key_of
from streams.core.runs import ENDED

if TYPE_CHECKING:
    from streams.core.runs import Flight, Run
    from streams.core.state import State

MAX_PAGES: Final = 500  # forgotten in one step: it writes one at most, so it keeps up with any number
_MAX_HOLES: Final = 4_096


def drop(state: State, run: Run) -> None:
    """End a waiting run that is not wanted. One that was never dispatched may be sent again at once."""
    state.dequeue(run, ENDED)
    if run.attempt:  # its attempts must not be numbered from 1 again
        end_run(state, run)
    else:
        state.forget_run(run)
    tenant = run.flow.parent
    tenant.holes += 1
    if tenant.holes > _MAX_HOLES:  # a dictionary that only shrinks is never packed, and is walked holes and all
        tenant.runs = dict(tenant.runs)
        tenant.holes = 0


def end_run(state: State, run: Run) -> None:
    """End a run that is no longer queued: its row goes, its id is remembered for a while."""
    page = _remember(state, (run.tenant, run.run_id))
    if run.lost:
        state.lost.keep(run, page)
    state.forget_run(run)


def keep_account(state: State, flight: Flight) -> None:
    """Keep the account of an attempt open that is given up after its run has ended; before it is released."""
    identity = (flight.tenant, flight.run_id)
    page = state.ended.get(identity) or _remember(state, identity)
    state.lost.keep_attempt(flight, page)
    state.out.changed[key_of(page)] = page


def _remember(state: State, identity: tuple[str, str]) -> EndedRecord:
    """Remember the id of a run that has ended on the page of this step."""
    out, pages = state.out, state.pages
    page = pages[-1] if pages else None
    if page is None or page.step != out.step:
        page = EndedRecord(step=out.step, at_ms=out.now_ms, runs=[])
        pages.append(page)
        out.changed[key_of(page)] = page
    page.runs.append(identity)
    state.ended[identity] = page
    return page


def forget_pages(state: State) -> None:
    """Forget the oldest ended runs: those past the stated time, and those above the stated number.

    The time bounds what is refused as a duplicate, not memory: where nothing comes in no step is due for it, and the
    next one forgets what is over.
    """
    memory = state.policy.policy.memory
    pages, ended = state.pages, state.ended
    oldest_ms = state.record.now_ms - memory.ended_ms
    most = MAX_PAGES
    while most and pages and (pages[0].at_ms < oldest_ms or len(ended) > memory.ended_runs):
        page = pages.popleft()
        for identity in page.runs:
            del ended[identity]
        for flow in state.lost.drop(page):
            state.close(flow)
        state.out.changed[key_of(page)] = None
        most -= 1
