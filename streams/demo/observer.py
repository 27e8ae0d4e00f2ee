"""Reads the topics of a deployment as they are written: what a third party would see, read_committed."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from streams import clock
from streams.client.polling import raise_unless_passing
from streams.core.inputs import SUCCEEDED
from streams.core.records import FlightRecord, FlowRecord, RunRecord
from streams.demo.records import Account, Filed, Handed, Records, Report
from streams.errors import FairstreamError, Unavailable
from streams.kafka import KafkaSettings, mapped_errors
from streams.rows import decode, decode_key
from streams.wire import (
    Assignment,
    decode_completion,
    decode_dispatch,
    decode_journal,
    decode_rejection,
    decode_request,
)

_BATCH: Final = 1_000
_ANSWER_S: Final = 15.0  # for one answer of a Kafka that is there
_DOING: Final = "reading the topics"


class Observer:
    """Follows five topics from their beginning and keeps what they say in `records`. Not thread-safe."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Begin. Raises `ConfigError` if a topic is missing, `Unavailable` if Kafka does not answer."""
        self.records = Records()
        topics = kafka.topics
        self._readers: dict[str, Callable[[Message], None]] = {
            topics.requests: self._request,
            topics.dispatch: self._dispatch,
            topics.completions: self._completion,
            topics.journal: self._step,
            topics.rejected: self._rejection,
        }
        self._consumer = _open(kafka, "observer", list(self._readers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def poll(self, timeout_s: float) -> None:
        """Take in what there is, waiting up to `timeout_s` for the first of it. Raises `BadRecord` for nonsense."""
        with mapped_errors(_DOING):
            first = self._consumer.poll(timeout_s)
            messages = [] if first is None else [first, *self._consumer.consume(_BATCH, 0)]
        for message in messages:
            error = message.error()
            if error is None:
                self._readers[message.topic() or ""](message)
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                raise_unless_passing(error, _DOING)

    def _request(self, message: Message) -> None:
        at_ms = message.timestamp()[1]
        request = decode_request(message.key(), message.value(), message.offset() or 0, at_ms)
        self.records.filed.append(Filed(request.tenant, request.run_id, at_ms))

    def _dispatch(self, message: Message) -> None:
        given = decode_dispatch(message.value())
        if isinstance(given, Assignment):
            at_ms = message.timestamp()[1]
            handed = Handed(given.seq, given.tenant, given.run_id, given.attempt, given.estimate, at_ms)
            self.records.handed.append(handed)

    def _completion(self, message: Message) -> None:
        said = decode_completion(message.key(), message.value(), message.offset() or 0)
        at_ms = message.timestamp()[1]
        report = Report(said.tenant, said.run_id, said.attempt, said.status, said.tokens, at_ms)
        self.records.reports.append(report)

    def _step(self, message: Message) -> None:
        settlements = decode_journal(message.value()).settlements
        self.records.settled += settlements
        self.records.succeeded += sum(settlement.outcome == SUCCEEDED for settlement in settlements)
        self.records.steps += 1

    def _rejection(self, message: Message) -> None:
        refusal = decode_rejection(message.value())
        self.records.refused.append(f"{refusal.tenant}/{refusal.run_id}: {refusal.reason}: {refusal.detail}")


def read_accounts(kafka: KafkaSettings, deadline_s: float) -> dict[str, Account]:
    """Return what the shard's own rows say of each tenant: the last committed ones, read to the end of the state topic.

    Raises `FairstreamError` if a run or an attempt is still open there, `Unavailable` at the deadline.
    """
    consumer = _open(kafka, "accountant", [kafka.topics.state])
    rows: dict[bytes, bytes | None] = {}
    end = clock.monotonic() + deadline_s
    try:
        with mapped_errors(_DOING):
            while not _read_rows(consumer, rows):
                if clock.monotonic() > end:
                    raise Unavailable(f"{_DOING}: no end of {kafka.topics.state} within {deadline_s:g} s")
    finally:
        consumer.close()
    records = [decode(decode_key(key)[1], value) for key, value in rows.items() if value is not None]
    still_open = [record for record in records if isinstance(record, RunRecord | FlightRecord)]
    if still_open:
        raise FairstreamError(f"the shard still knows {len(still_open)} runs and attempts that have ended")
    return {
        record.tenant: Account(record.charged, record.actual) for record in records if isinstance(record, FlowRecord)
    }


def _read_rows(consumer: Consumer, rows: dict[bytes, bytes | None]) -> bool:
    """Take in a batch; tell whether it reached the end."""
    at_end = False
    first = consumer.poll(1.0)
    for message in [] if first is None else [first, *consumer.consume(_BATCH, 0)]:
        error = message.error()
        if error is None:
            at_end = False
            rows[message.key() or b""] = message.value()
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            at_end = True
        else:
            raise_unless_passing(error, _DOING)
    return at_end


def _open(kafka: KafkaSettings, who: str, topics: list[str]) -> Consumer:
    with mapped_errors(_DOING):
        consumer = Consumer(
            kafka.client(
                group_id=kafka.reader_group,
                client_id=f"demo-{who}",
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                fetch_wait_max_ms=100,
            )
        )
        metadata = consumer.list_topics(timeout=_ANSWER_S).topics
        consumer.assign(
            [TopicPartition(name, number, OFFSET_BEGINNING) for name in topics for number in metadata[name].partitions]
        )
    return consumer
