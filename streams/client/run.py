"""What a user's function gets: one attempt of a run, and the means to report on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.client.verdicts import Unwanted

if TYPE_CHECKING:
    from streams.wire import Assignment

RunKey = tuple[str, str, int]  # tenant, run_id, attempt


class Run:
    """One attempt of a run, in progress.

    At least once: the same run may be handed out again, later or even at the same time, after a worker was lost or
    was thought lost. `attempt` grows each time; a function with effects elsewhere uses (`tenant`, `run_id`,
    `attempt`) as its fencing token and lets the highest attempt win.
    """

    __slots__ = ("_assignment", "_tokens", "_unwanted", "beat_at")

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._tokens: int | None = None
        self._unwanted: str | None = None
        self.beat_at = 0.0  # monotonic s, when the next heartbeat is due; kept by `streams.client.heartbeats`

    # --- what to do

    @property
    def tenant(self) -> str:
        return self._assignment.tenant

    @property
    def run_id(self) -> str:
        return self._assignment.run_id

    @property
    def workflow(self) -> str:
        return self._assignment.workflow

    @property
    def attempt(self) -> int:
        """Which dispatch of the run this is, from 1."""
        return self._assignment.attempt

    @property
    def payload(self) -> Any:
        """The payload as Python values, None if there is none. Parsed at each call."""
        return self._assignment.payload

    @property
    def headers(self) -> dict[str, str]:
        return self._assignment.headers

    @property
    def max_tokens(self) -> int | None:
        """Tokens the run may spend at most; holding to it is the function's duty."""
        return self._assignment.max_tokens

    @property
    def deadline_ms(self) -> int | None:
        """When the result is no longer of use, in milliseconds since the epoch."""
        return self._assignment.deadline_ms

    @property
    def assignment(self) -> Assignment:
        """The whole message, with class, estimate, lease, shard, step, sequence number and epoch."""
        return self._assignment

    @property
    def key(self) -> RunKey:
        return self._assignment.tenant, self._assignment.run_id, self._assignment.attempt

    # --- what it has cost

    def spent(self, tokens: int) -> None:
        """Add tokens to what this attempt has spent so far; the next heartbeat carries the sum.

        Call it from one thread at a time. Raises `ValueError` for a negative number.
        """
        if tokens < 0:
            raise ValueError(f"tokens spent cannot be taken back: {tokens}")
        self._tokens = (self._tokens or 0) + tokens

    @property
    def tokens(self) -> int | None:
        """Tokens spent so far; None if `spent` was never called."""
        return self._tokens

    # --- whether it is still wanted

    @property
    def unwanted(self) -> str | None:
        """Why the result is not wanted any more (`revoked`, `deadline`, `drained`), or None while it is."""
        return self._unwanted

    def check(self) -> None:
        """Raise `Unwanted` if the result is not wanted any more: a good thing to call between two steps.

        A coroutine function needs no check: it is cancelled, once, and may take its time to clean up.
        """
        if self._unwanted is not None:
            raise Unwanted(self._unwanted)

    def abandon(self, why: str) -> None:
        """Mark the run as not wanted; the first reason stands. For the worker, not for functions."""
        self._unwanted = self._unwanted or why
