"""What the time of a run is divided into. Each millisecond belongs to one part, so the parts add up to the whole.

A shard advances in steps, and only a step can change anything. So the time between two steps belongs to what held the
run back after the first of them, as the core itself says (`streams.core.run_view`); if the second one begins with a new
owner, it belongs to the outage, whatever else held the run back.

before a dispatch
    intake          from the time of the request's record to the step that took it in, without outages
    outage          the shard had no owner: from the last step of one to the first of the next (before the first owner,
                    all of it)
    delayed         until the time that the request named (`not_before_ms`), and to the step that saw it
    backoff         the pause after an attempt that failed or was lost, and to the step that ended it
    paused          its tenant was paused, or no longer named by a closed policy
    cap_runs        its tenant had as many runs in flight as it may
    cap_tokens      its tenant had no room for the tokens of the run at the head of its queue
    own             earlier runs of its own tenant and class stood before it
    turn            it was the first of its tenant, and tenants of its class went before it
    class           it was the first of its tenant, and another class went before its own
    window_runs     it was the next of all, and the window had no place
    window_tokens   it was the next of all, and the window had no room for its tokens
    visit           it was the next of all, there was room, and the step was as large as one may be
    overdue         its deadline had passed, and it was yet to be rejected
after it
    handover        from the step that dispatched it to the time of the first report of a worker: the commit of the
                    step, and the way to the worker. A worker whose first report is its last has none: all is running
    unheard         the attempt was dispatched, and ended without a report of any worker
    running         from the first report to the last one
    silent          from the last report to the step that gave the attempt up, its lease having run out
    settling        from the last report to the step that took it in

Times of records are those of whoever wrote them: they are held between the steps that they must lie between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streams.core import run_view, waiting

INTAKE: Final = "intake"
OUTAGE: Final = "outage"
BACKOFF: Final = "backoff"
HANDOVER: Final = "handover"
UNHEARD: Final = "unheard"
RUNNING: Final = "running"
SILENT: Final = "silent"
SETTLING: Final = "settling"

# In which nobody worked on the run, in the order in which they are told.
WAITS: Final = (
    INTAKE,
    OUTAGE,
    waiting.DELAYED,
    BACKOFF,
    waiting.PAUSED,
    waiting.CAP_RUNS,
    waiting.CAP_TOKENS,
    run_view.OWN,
    waiting.TURN,
    waiting.CLASS,
    waiting.WINDOW_RUNS,
    waiting.WINDOW_TOKENS,
    waiting.VISIT,
    run_view.OVERDUE,
    HANDOVER,
    UNHEARD,
)
WORK: Final = (RUNNING, SILENT, SETTLING)
PARTS: Final = (*WAITS, *WORK)

# For people, after "waited ... ".
WORDS: Final[Mapping[str, str]] = {
    INTAKE: "to be taken in",
    OUTAGE: "while the shard had no scheduler",
    waiting.DELAYED: "for the time it asked for",
    BACKOFF: "in the pause after an attempt",
    waiting.PAUSED: "while its tenant was paused",
    waiting.CAP_RUNS: "at its tenant's cap of runs in flight",
    waiting.CAP_TOKENS: "at its tenant's cap of tokens in flight",
    run_view.OWN: "behind earlier runs of its own tenant",
    waiting.TURN: "for the turns of other tenants",
    waiting.CLASS: "for other classes",
    waiting.WINDOW_RUNS: "for a place in the window, being next",
    waiting.WINDOW_TOKENS: "for room in the window for its tokens, being next",
    waiting.VISIT: "for the next step, this one being full",
    run_view.OVERDUE: "to be rejected, past its deadline",
    HANDOVER: "for a worker to take it up, once dispatched",
    UNHEARD: "for attempts that no worker took up",
    RUNNING: "running",
    SILENT: "silent, until the lease ran out",
    SETTLING: "until the end was taken in",
}

# What ended a wait whose last part was this one, after "when ...". The others end in no dispatch.
ENDS: Final[Mapping[str, str]] = {
    INTAKE: "it was taken in",
    OUTAGE: "the shard had a scheduler again",
    waiting.DELAYED: "the time that it asked for had come",
    BACKOFF: "the pause was over",
    waiting.PAUSED: "its tenant was paused no longer",
    waiting.CAP_RUNS: "its tenant had a run less in flight",
    waiting.CAP_TOKENS: "its tenant had room for its tokens",
    run_view.OWN: "the runs before it had gone, or were no longer wanted",
    waiting.TURN: "its tenant's turn had come",
    waiting.CLASS: "the turn of its class had come",
    waiting.WINDOW_RUNS: "a place in the window came free",
    waiting.WINDOW_TOKENS: "the window had room for its tokens",
    waiting.VISIT: "the next step went on",
    "": "it had come back",
}


def waited_ms(parts: Mapping[str, int]) -> int:
    """Return how much of it nobody worked on the run, in ms."""
    return sum(ms for part, ms in parts.items() if part in WAITS)


def added(*several: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of several divisions, in the order of `PARTS`, without what is 0."""
    return {part: ms for part in PARTS if (ms := sum(each.get(part, 0) for each in several))}
