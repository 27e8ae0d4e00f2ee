"""The living form of a run: its record plus where it is and what it has behind it."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from streams.core.records import RETRY, RUN, RetryRecord, RunRecord

if TYPE_CHECKING:
    from streams.core.records import Key


class RunState(IntEnum):
    """Where a run is."""

    QUEUED = 0
    DELAYED = 1  # waits outside the ring for `ready_ms`
    IN_FLIGHT = 2
    ENDED = 3


class Run(RunRecord):
    """A run. A `RunRecord` itself, so that it can be written as a row as it is.

    Dispatching it for the first time changes no row of it: that it is in flight is told by the flight's row, that
    it came back by a `RetryRecord`.
    """

    __slots__ = ("attempt", "lost", "ready_ms", "retried", "state", "tries")

    @classmethod
    def adopt(cls, record: RunRecord) -> Run:
        """Return the living form of a record that was loaded: queued, never dispatched."""
        self = cls(*(getattr(record, name) for name in RunRecord.__slots__))
        self.begin()
        return self

    def begin(self) -> None:
        """Set what a new run has: no attempt yet."""
        self.state = RunState.QUEUED
        self.attempt = 0  # number of the last attempt dispatched; never goes back
        self.tries = 0  # attempts that count against max_attempts
        self.ready_ms = self.not_before_ms
        self.lost: dict[int, int] = {}  # attempt -> tokens charged, for attempts given up as lost
        self.retried = False  # it has a `RetryRecord`

    @property
    def key(self) -> Key:
        """The key of its row."""
        return (RUN, self.tenant, self.run_id)

    @property
    def retry_key(self) -> Key:
        """The key of its `RetryRecord`."""
        return (RETRY, self.tenant, self.run_id)

    def retry_record(self) -> RetryRecord:
        """Return the row that says what it has behind it: without the attempt in flight, which has its own row."""
        under_way = 1 if self.state is RunState.IN_FLIGHT else 0
        attempt, tries = self.attempt - under_way, self.tries - under_way
        return RetryRecord(self.tenant, self.run_id, attempt, tries, self.ready_ms, self.lost)

    def resume(self, retry: RetryRecord) -> None:
        """Take over what its loaded retry row says."""
        self.attempt, self.tries, self.ready_ms = retry.attempt, retry.tries, retry.ready_ms
        self.lost = retry.lost
        self.retried = True

    def due_ms(self) -> int | None:
        """Return when it waits for something by the wall clock: the end of its pause, or its deadline."""
        if self.state is RunState.DELAYED:
            return self.ready_ms if self.deadline_ms is None else min(self.ready_ms, self.deadline_ms)
        return self.deadline_ms if self.state is RunState.QUEUED else None
