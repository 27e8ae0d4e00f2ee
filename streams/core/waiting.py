"""Why nothing more starts: the words a flow's `skip` and a shard's `waiting_for` are taken from. Both are closed."""

from __future__ import annotations

from typing import Final

NOTHING: Final = ""  # nothing waits

# Why the head of a flow has not been dispatched yet.
TURN: Final = "turn"  # its turn has not come
VISIT: Final = "visit"  # it is being served: the step was full, the next one goes on with it
WINDOW_RUNS: Final = "window_runs"  # its turn has come, and the window has no place for another run
WINDOW_TOKENS: Final = "window_tokens"  # its turn has come, and the window has no room for its tokens
CLASS: Final = "class"  # another class goes first
CAP_RUNS: Final = "cap_runs"  # its tenant has as many runs in flight as it may
CAP_TOKENS: Final = "cap_tokens"  # its tenant has no room for the head's tokens
PAUSED: Final = "paused"  # its tenant is paused
DELAYED: Final = "delayed"  # all it has waits for its time

SKIPS: Final = (
    NOTHING,
    TURN,
    VISIT,
    WINDOW_RUNS,
    WINDOW_TOKENS,
    CLASS,
    CAP_RUNS,
    CAP_TOKENS,
    PAUSED,
    DELAYED,
)

# What a shard needs before it can dispatch again.
STEP: Final = "step"  # nothing: the last step was full, the next one is due
CAPS: Final = "caps"  # all that is queued belongs to tenants at their own caps, or paused
TIME: Final = "time"  # all that is queued waits for its time
WORK: Final = "work"  # nothing is queued

WAITS: Final = (STEP, WINDOW_RUNS, WINDOW_TOKENS, CAPS, TIME, WORK)
