"""The gate's process: turn after turn, and a new start after whatever goes wrong.

A failure is met in one way: consumer and producer are thrown away, and new ones go on where the group's offsets stand.
These are moved by the transactions that write, so nothing is lost by that and nothing is done twice.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.client.stopping import Stopping, stop_on_signals
from streams.client.waiting import wait_for_topic
from streams.errors import BadRecord, OwnershipLost, StepAborted, Unavailable
from streams.gate.checking import Arrived, Checker, Verdict
from streams.gate.turns import Turns, open_consumer
from streams.gate.writing import TurnWriter
from streams.transactions import open_producer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.gate.settings import GateSettings
    from streams.kafka import KafkaSettings

_LOG: Final = logging.getLogger("streams.gate")

_TURN_S: Final = 0.2  # how long a turn waits for its first record: a request to stop is noticed within it
_REPORT_S: Final = 60.0
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 5.0
_LOOK_S: Final = 0.1


def run_gate(kafka: KafkaSettings, settings: GateSettings) -> None:
    """Serve until SIGTERM or SIGINT.

    Waits for a Kafka that does not answer (yet). Raises `ConfigError` for topics that are not there and rights that we
    do not have.
    """
    stopping = Stopping()
    gate = Gate(kafka, settings, stopping)
    with stop_on_signals(stopping):
        if wait_for_topic(kafka, kafka.topics.requests, give_up=lambda: stopping.asked):
            gate.serve()


class Gate:
    """Serves with one session after another."""

    def __init__(self, kafka: KafkaSettings, settings: GateSettings, stopping: Stopping) -> None:
        self._kafka: Final = kafka
        self._settings: Final = settings
        self._stopping: Final = stopping
        self._wait_s = _FIRST_WAIT_S

    def serve(self) -> None:
        """Serve until asked to stop. Raises what a new session would not mend."""
        while not self._over():
            try:
                self._serve_once()
            except (OwnershipLost, StepAborted, Unavailable) as error:
                if not self._over():
                    _LOG.warning("streams.gate.again in_s=%g: %s", self._wait_s, error)
                    self._pause()

    def _serve_once(self) -> None:
        """One session, from joining to leaving."""
        kafka, settings = self._kafka, self._settings
        writer = TurnWriter(
            open_producer(
                kafka, settings.transactional_id(kafka), timeout_ms=round(settings.transaction_timeout_s * 1000)
            ),
            patience_s=settings.transaction_timeout_s,
            give_up=self._over,
        )
        writer.open()
        writer.partitions(kafka.topics.rejected)
        checker = Checker(kafka.prefix, kafka.topics, writer.partitions(kafka.topics.requests))
        consumer = open_consumer(
            kafka,
            kafka.gate_group,
            session_timeout_ms=round(settings.session_timeout_s * 1000),
            look_every_ms=round(settings.look_every_s * 1000),
        )
        with ExitStack() as stack:
            turns = Turns(consumer, kafka.prefix)
            stack.callback(turns.close)
            session = Session(turns, checker, writer)
            while not self._over():
                if session.turn(_TURN_S):
                    self._wait_s = _FIRST_WAIT_S
            session.report()

    def _over(self) -> bool:
        return self._stopping.asked

    def _pause(self) -> None:
        """Wait before the next session, longer each time until one has written a turn."""
        end = clock.monotonic() + self._wait_s
        self._wait_s = min(self._wait_s * 2, _LONGEST_WAIT_S)
        while not self._over() and clock.monotonic() < end:
            clock.pause(_LOOK_S)


class Session:
    """A reader and a writer as long as both are good for something."""

    def __init__(self, turns: Turns, checker: Checker, writer: TurnWriter) -> None:
        self._turns: Final = turns
        self._checker: Final = checker
        self._writer: Final = writer
        self._passed = 0
        self._refused = 0
        self._next_report_s = clock.monotonic() + _REPORT_S

    def turn(self, timeout_s: float) -> bool:
        """Do one turn, and say whether there was anything to do. Raises as `Turns` and `TurnWriter` do."""
        records = self._turns.take(timeout_s)
        if records:
            self._do(records)
        if clock.monotonic() >= self._next_report_s:
            self.report()
        return bool(records)

    def report(self) -> None:
        """Log what was done since the last time, if anything."""
        if self._passed or self._refused:
            _LOG.info(
                "streams.gate.done passed=%d refused=%d topics=%d", self._passed, self._refused, self._turns.topics
            )
        self._passed = self._refused = 0
        self._next_report_s = clock.monotonic() + _REPORT_S

    def _do(self, records: Sequence[Arrived]) -> None:
        """Write what takes the records' place. One that Kafka does not take is found by halves, and refused."""
        now_ms = clock.now_ms()
        try:
            self._write(records, lambda record: self._checker.judge(record, now_ms))
        except BadRecord as error:
            if len(records) > 1:
                half = len(records) // 2
                self._do(records[:half])
                self._do(records[half:])
            else:
                problem = BadRecord(f"Kafka does not take it: {error}")
                self._write(records, lambda record: self._checker.refuse(record, problem, now_ms))

    def _write(self, records: Sequence[Arrived], judge: Callable[[Arrived], Verdict]) -> None:
        verdicts = [judge(record) for record in records]
        offsets = {(record.topic, record.partition): record.offset + 1 for record in records}
        self._writer.write(verdicts, offsets, self._turns.membership)
        refused = sum(verdict.refused for verdict in verdicts)
        self._refused += refused
        self._passed += len(verdicts) - refused
