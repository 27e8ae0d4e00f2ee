"""What a worker says about its attempts, as records on the completions topic."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streams.core.inputs import HEARTBEAT, STARTED
from streams.errors import BadRecord
from streams.kafka import from_kafka
from streams.wire import encode_completion

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from streams.client.run import Run
    from streams.client.sender import Sender
    from streams.client.verdicts import Outcome
    from streams.wire import Assignment

_LOG: Final = logging.getLogger("streams.client.reports")


class Reports:
    """Reports on attempts, keyed by tenant so that each reaches the shard that dispatched it. Thread-safe.

    A report that Kafka does not take is logged and counted in `failed`, not sent again: once the producer has given
    up, the attempt's lease has run out, and the scheduler has settled the matter without it.
    """

    def __init__(self, sender: Sender, topic: str, worker: str) -> None:
        self._sender = sender
        self._topic = topic
        self._worker = worker  # this worker's name, for people
        self.failed = 0

    def started(self, run: Run) -> None:
        """The attempt begins: its lease runs from here."""
        self._report(run.assignment, STARTED)

    def heartbeat(self, run: Run) -> None:
        """The attempt is alive, and has spent this much so far."""
        self._report(run.assignment, HEARTBEAT, run.tokens)

    def ended(self, run: Run, outcome: Outcome) -> None:
        """The attempt is over. Usage that no run can have had is left out and said so, so that the run still ends."""
        assignment, (status, tokens, retryable, error) = run.assignment, outcome
        try:
            self._report(assignment, status, tokens, retryable=retryable, error=error)
        except BadRecord as bad:
            self._report(assignment, status, retryable=retryable, error=f"{error or ''} ({bad})")

    def poll(self) -> None:
        """Let failed deliveries be counted; call it now and then."""
        self._sender.poll()

    def flush(self, timeout_s: float) -> int:
        """Wait until all reports are in Kafka; return how many are not after `timeout_s`."""
        return self._sender.flush(timeout_s)

    def _report(
        self,
        assignment: Assignment,
        status: str,
        tokens: int | None = None,
        *,
        retryable: bool = False,
        error: str | None = None,
    ) -> None:
        value = encode_completion(
            tenant=assignment.tenant,
            run_id=assignment.run_id,
            attempt=assignment.attempt,
            status=status,
            tokens=tokens,
            retryable=retryable,
            error=error,
            worker=self._worker,
            shard=assignment.shard,
        )
        self._sender.send(self._topic, assignment.tenant, value, self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            _LOG.error("streams.client.report_lost: %s", from_kafka(error, f"sending to {message.topic()}"))
