"""The living forms of a run and of an attempt in flight: their records plus what can be worked out."""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from streams.core.records import FLIGHT, RETRY, RUN, FlightRecord, RetryRecord, RunRecord

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.inputs import Submit
    from streams.core.records import Key

_RUN_FIELDS: Final = [each.name for each in fields(RunRecord)]
_FLIGHT_FIELDS: Final = [each.name for each in fields(FlightRecord)]


class RunState(IntEnum):
    """Where a run is."""

    QUEUED = 0
    DELAYED = 1  # waits outside the ring for `ready_ms`
    IN_FLIGHT = 2
    ENDED = 3


# On the path of every run, where looking a member up in its enum would cost as much as a call.
QUEUED: Final = RunState.QUEUED
DELAYED: Final = RunState.DELAYED
IN_FLIGHT: Final = RunState.IN_FLIGHT
OVER: Final = RunState.ENDED


class Run(RunRecord):
    """A run. A `RunRecord` itself, so that it can be written as a row as it is.

    Dispatching it for the first time changes no row of it: that it is in flight is told by the flight's row, that
    it came back by a `RetryRecord`.
    """

    __slots__ = ("after", "attempt", "before", "flow", "lost", "ready_ms", "retried", "state", "tries")

    # Not by the record's own constructor: one call less for each run, and none that is interpreted in compiled code.
    def __init__(self, submit: Submit, flow: Flow, estimate: int, max_attempts: int, lease_ms: int) -> None:
        """Join a flow with what a request says and what the policy makes of it."""
        self.tenant = flow.tenant
        self.run_id = submit.run_id
        self.workflow = submit.workflow
        self.class_ = flow.class_
        self.position = submit.position
        self.estimate = estimate
        self.max_tokens = submit.max_tokens
        self.deadline_ms = submit.deadline_ms
        self.max_attempts = max_attempts
        self.lease_ms = lease_ms
        self.submitted_ms = submit.submitted_ms
        self.not_before_ms = submit.not_before_ms or 0
        self.body = submit.body
        self._begin(flow)

    @classmethod
    def adopt(cls, record: RunRecord, flow: Flow) -> Run:
        """Return the living form of a record that was loaded: queued, never dispatched."""
        self = cls.__new__(cls)
        for name in _RUN_FIELDS:
            setattr(self, name, getattr(record, name))
        self._begin(flow)
        return self

    def _begin(self, flow: Flow) -> None:
        self.flow = flow
        self.before: Run | None = None  # its neighbours in the flow's queue, see `fifo`
        self.after: Run | None = None
        self.state = QUEUED
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

    def deadline_due_ms(self) -> int | None:
        """Return the deadline by which it must have been dispatched; None if there is none, or it has been."""
        return self.deadline_ms if self.state is QUEUED or self.state is DELAYED else None


class Flight(FlightRecord):
    """An attempt in flight. A `FlightRecord` itself, so that it can be written as a row as it is."""

    __slots__ = ("flow", "key", "open")

    def __init__(self, run: Run, seq: int, now_ms: int, expires_ms: int, class_pays: bool) -> None:  # noqa: FBT001 - by position, once for each run
        """Begin the run's present attempt: nobody has been heard of it yet."""
        self.tenant = run.tenant
        self.run_id = run.run_id
        self.class_ = run.class_
        self.workflow = run.workflow
        self.attempt = run.attempt
        self.tries = run.tries
        self.seq = seq
        self.dispatched_ms = now_ms
        self.estimate = self.charged = run.estimate
        self.reported = 0
        self.expires_ms = expires_ms
        self.lease_ms = run.lease_ms
        self.heard = self.revoked = False
        self.class_pays = class_pays
        self._begin(run.flow)

    @classmethod
    def adopt(cls, record: FlightRecord, flow: Flow) -> Flight:
        """Return the living form of a record that was loaded."""
        self = cls.__new__(cls)
        for name in _FLIGHT_FIELDS:
            setattr(self, name, getattr(record, name))
        self._begin(flow)
        return self

    def _begin(self, flow: Flow) -> None:
        self.flow = flow
        self.key: Key = (FLIGHT, self.tenant, self.run_id, str(self.attempt))
        self.open = True  # until it is settled

    def due_ms(self) -> int | None:
        """Return when its lease runs out, on the lease clock; None once it is settled."""
        return self.expires_ms if self.open else None
