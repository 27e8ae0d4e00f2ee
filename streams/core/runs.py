"""The living forms of a run and of an attempt in flight: their records plus what can be worked out."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from streams.core.records import FLIGHT, RETRY, RUN, FlightRecord, RetryRecord, RunRecord

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.inputs import Submit
    from streams.core.records import Key


class RunState(IntEnum):
    """Where a run is."""

    QUEUED = 0
    DELAYED = 1  # waits outside the ring for `ready_ms`
    IN_FLIGHT = 2
    ENDED = 3
    OVERDUE = 4  # its deadline has passed: out of its queue, to be rejected by and by


# On the path of every run, where looking a member up in its enum would cost as much as a call.
QUEUED: Final = RunState.QUEUED
DELAYED: Final = RunState.DELAYED
IN_FLIGHT: Final = RunState.IN_FLIGHT
ENDED: Final = RunState.ENDED

NONE_LOST: Final[dict[int, int]] = {}  # of all runs that never lost an attempt: replaced, never changed


class Run(RunRecord):
    """A run. A `RunRecord` itself, so that it can be written as a row as it is.

    Dispatching it for the first time changes no row of it: that it is in flight is told by the flight's row, that
    it came back by a `RetryRecord`.
    """

    __slots__ = ("after", "attempt", "before", "flow", "lost", "ready_ms", "retried", "state", "tries")

    # Not by the record's own constructor: one call less for each run, and none that is interpreted in compiled code.
    def __init__(self, given: Submit | RunRecord, flow: Flow, estimate: int, max_attempts: int, lease_ms: int) -> None:
        """Join a flow with what a request says and the policy makes of it. It was never dispatched."""
        self.tenant = flow.tenant
        self.run_id = given.run_id
        self.workflow = given.workflow
        self.class_ = flow.class_
        self.position = given.position
        self.estimate = estimate
        self.max_tokens = given.max_tokens
        self.deadline_ms = given.deadline_ms
        self.max_attempts = max_attempts
        self.lease_ms = lease_ms
        self.submitted_ms = given.submitted_ms
        self.not_before_ms = given.not_before_ms or 0
        self.body = given.body
        self.flow = flow
        self.before: Run | None = None  # its neighbours in the flow's queue, see `fifo`
        self.after: Run | None = None
        self.state = QUEUED
        self.attempt = 0  # number of the last attempt dispatched; never goes back
        self.tries = 0  # attempts that count against max_attempts
        self.ready_ms = self.not_before_ms
        self.lost = NONE_LOST  # attempt -> tokens charged, for attempts given up as lost
        self.retried = False  # it has a `RetryRecord`

    @classmethod
    def adopt(cls, record: RunRecord, flow: Flow) -> Run:
        """Return the living form of a record that was loaded: queued, never dispatched."""
        return cls(record, flow, record.estimate, record.max_attempts, record.lease_ms)

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
        under_way = 1 if self.state is IN_FLIGHT else 0
        attempt, tries = self.attempt - under_way, self.tries - under_way
        return RetryRecord(self.tenant, self.run_id, attempt, tries, self.ready_ms, self.lost)

    def resume(self, retry: RetryRecord) -> None:
        """Take over what its loaded retry row says."""
        self.attempt, self.tries, self.ready_ms = retry.attempt, retry.tries, retry.ready_ms
        self.lost = retry.lost
        self.retried = True

    def ready_due_ms(self) -> int | None:
        """Return the end of the pause it waits for; None if it does not wait."""
        return self.ready_ms if self.state is DELAYED else None

    def overdue_since_ms(self) -> int | None:
        """Return the deadline that it has missed, as long as that is still to be said; else None."""
        return self.deadline_ms if self.state is RunState.OVERDUE else None

    def deadline_due_ms(self) -> int | None:
        """Return the deadline by which it must have been dispatched; None if there is none, or it has been."""
        return self.deadline_ms if self.state is QUEUED or self.state is DELAYED else None


class Flight(FlightRecord):
    """An attempt in flight. A `FlightRecord` itself, so that it can be written as a row as it is."""

    __slots__ = ("flow", "key", "open")

    # As with a run: not by the record's own constructor.
    def __init__(self, given: Run | FlightRecord, flow: Flow, seq: int, dispatched_ms: int, expires_ms: int) -> None:
        """Begin the present attempt of a run: it is charged the estimate, and nobody has heard of it yet."""
        self.tenant = flow.tenant
        self.run_id = given.run_id
        self.class_ = flow.class_
        self.workflow = given.workflow
        self.attempt = given.attempt
        self.tries = given.tries
        self.seq = seq
        self.dispatched_ms = dispatched_ms
        self.estimate = given.estimate
        self.charged = given.estimate
        self.reported = 0
        self.expires_ms = expires_ms
        self.lease_ms = given.lease_ms
        self.heard = False
        self.revoked = False
        self.class_pays = False
        self.flow = flow
        self.key: Key = (FLIGHT, flow.tenant, given.run_id, str(given.attempt))
        self.open = True  # until it is settled

    @classmethod
    def adopt(cls, record: FlightRecord, flow: Flow) -> Flight:
        """Return the living form of a record that was loaded."""
        self = cls(record, flow, record.seq, record.dispatched_ms, record.expires_ms)
        self.charged, self.reported = record.charged, record.reported
        self.heard, self.revoked, self.class_pays = record.heard, record.revoked, record.class_pays
        return self

    def due_ms(self) -> int | None:
        """Return when its lease runs out, on the lease clock; None once it is settled."""
        return self.expires_ms if self.open else None
