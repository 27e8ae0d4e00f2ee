"""What a worker does with what comes in: start, stop, report. Knows no Kafka client, only the parts it is given."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.client.attempts import Attempts
from streams.client.heartbeats import beat_interval_s
from streams.client.loop import Loop
from streams.client.revocations import Revoked
from streams.client.run import Run
from streams.client.threads import Threads
from streams.client.verdicts import DEADLINE, DRAINED, REVOKED, Outcome, given_up, returned
from streams.core.inputs import FAILED
from streams.errors import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.client.functions import Functions
    from streams.client.intake import Intake
    from streams.client.reports import Reports
    from streams.wire import Assignment, Revocation

_LOG: Final = logging.getLogger("streams.client.engine")


class Engine:
    """Turns assignments into runs of the user's functions, and their ends into reports.

    `turn` and `drain` are called by one thread; `revoke`, `abandon` and `fail` by any.
    """

    def __init__(
        self,
        *,
        intake: Intake,
        reports: Reports,
        functions: Functions,
        concurrency: int,
        announce: bool = True,
    ) -> None:
        """`announce`: report each start. Without it, short runs cost one report instead of two."""
        self.attempts = Attempts(concurrency)
        self._intake = intake
        self._reports = reports
        self._functions = functions
        self._announce = announce
        self._revoked = Revoked()
        self._threads = Threads(concurrency, self._ended)
        self._loop = Loop(self._ended)
        self.failure: BaseException | None = None  # why this worker cannot go on

    def turn(self, wait_s: float) -> None:
        """Take in what there is room for and start it; wait up to `wait_s` for room, and as long for work."""
        room = self.attempts.wait_for_room(wait_s)
        taken = self._intake.take(room, wait_s)
        for revocation in taken.revocations:
            self.revoke(revocation)
        for assignment in taken.refused:
            self._reports.ended(Run(assignment), returned("no worker had room"))
        for assignment in taken.assignments:
            self._start(assignment)
        self._intake.settle()
        self._reports.poll()

    def revoke(self, revocation: Revocation) -> None:
        """Stop an attempt that is not wanted any more, or see to it that it is not started."""
        key = (revocation.tenant, revocation.run_id, revocation.attempt)
        run = self.attempts.find(key)
        if run is not None:
            self.abandon(run, REVOKED)
        else:
            self._revoked.add(key)

    def abandon(self, run: Run, why: str) -> None:
        """Tell a run's function to stop: a coroutine is cancelled (once), a plain function must look."""
        run.abandon(why)
        self._loop.cancel(run)

    def fail(self, error: BaseException) -> None:
        """Note that a part of the worker has failed for good; the first one is what `serve` raises."""
        self.failure = self.failure or error

    def drain(self, wait: Callable[[Attempts], bool]) -> None:
        """Take in nothing more, let what runs end as long as `wait` waits, and hand back the rest.

        A plain function that is handed back goes on in its thread until it looks or ends; its result is ignored.
        """
        self._intake.close()
        if not wait(self.attempts):
            for run in self.attempts.snapshot():
                run.abandon(DRAINED)
                self._ended(run, given_up(run, DRAINED))
        self._loop.close()
        self._threads.close()

    def _start(self, assignment: Assignment) -> None:
        run = Run(assignment)
        function = self._functions.find(assignment.workflow)
        deadline = assignment.deadline_ms
        if run.key in self._revoked:
            self._reports.ended(run, returned("revoked before it was started"))
        elif deadline is not None and deadline <= clock.now_ms():
            self._reports.ended(run, Outcome(FAILED, 0, error=DEADLINE))
        elif function is None:
            # Not handed back, since it would come again at once, and for ever; its attempts bound this.
            error = f"this worker has no function for workflow {assignment.workflow!r}"
            self._reports.ended(run, Outcome(FAILED, 0, retryable=True, error=error))
        elif self.attempts.add(run):
            run.beat_at = clock.monotonic() + beat_interval_s(run)
            if self._announce:
                self._reports.started(run)
            if function.coroutine is not None:
                self._loop.start(run, function.coroutine)
            elif function.plain is not None:
                self._threads.start(run, function.plain)
        else:
            tenant, run_id, attempt = run.key
            _LOG.info(
                "streams.client.already_here tenant=%s run_id=%s attempt=%d", visible(tenant), visible(run_id), attempt
            )

    def _ended(self, run: Run, outcome: Outcome) -> None:
        if self.attempts.end(run):
            try:
                self._reports.ended(run, outcome)
            except Exception as error:  # noqa: BLE001 - raised in a thread that nobody listens to
                self.fail(error)
