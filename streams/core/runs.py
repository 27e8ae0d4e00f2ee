"""The living forms of a run and of an attempt in flight: their records plus what can be worked out."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from streams.core.records import FLIGHT, RETRY, RUN, FlightRecord, RetryRecord, RunRecord, fields_of

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.records import Key

_RUN_FIELDS: Final = fields_of(RunRecord)
_FLIGHT_FIELDS: Final = fields_of(FlightRecord)


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

    __slots__ = ("after", "attempt", "before", "flow", "lost", "ready_ms", "retried", "state", "tries")

    @classmethod
    def adopt(cls, record: RunRecord, flow: Flow) -> Run:
        """Return the living form of a record that was loaded: queued, never dispatched."""
        self = cls(*_RUN_FIELDS(record))
        self.begin(flow)
        return self

    def begin(self, flow: Flow) -> None:
        """Join a flow with what a new run has: no attempt yet."""
        self.flow = flow
        self.before: Run | None = None  # its neighbours in the flow's queue, see `fifo`
        self.after: Run | None = None
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

    def ready_due_ms(self) -> int | None:
        """Return the end of the pause it waits for; None if it does not wait."""
        return self.ready_ms if self.state is RunState.DELAYED else None

    def deadline_due_ms(self) -> int | None:
        """Return the deadline by which it must have been dispatched; None if there is none, or it has been."""
        waiting = self.state is RunState.QUEUED or self.state is RunState.DELAYED
        return self.deadline_ms if waiting else None


class Flight(FlightRecord):
    """An attempt in flight. A `FlightRecord` itself, so that it can be written as a row as it is."""

    __slots__ = ("flow", "key", "open")

    @classmethod
    def adopt(cls, record: FlightRecord, flow: Flow) -> Flight:
        """Return the living form of a record that was loaded."""
        self = cls(*_FLIGHT_FIELDS(record))
        self.begin(flow)
        return self

    def begin(self, flow: Flow) -> None:
        """Take its place in a flow."""
        self.flow = flow
        self.key: Key = (FLIGHT, self.tenant, self.run_id, str(self.attempt))
        self.open = True  # until it is settled

    def due_ms(self) -> int | None:
        """Return when its lease runs out, on the lease clock; None once it is settled."""
        return self.expires_ms if self.open else None
