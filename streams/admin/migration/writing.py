"""Writes records in Kafka transactions: all of them, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from streams import clock
from streams.errors import OwnershipLost, Unavailable
from streams.kafka import from_kafka, mapped_errors
from streams.wire import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streams.kafka import KafkaSettings

_SLICE_S: Final = 1.0
_PATIENCE_S: Final = 60.0  # a broker's restart
_TIMEOUT_MS: Final = 60_000  # of a transaction that is left behind: readers wait for its end, unless it is fenced
_QUEUE_MESSAGES: Final = 1_000_000  # a transaction is bounded, so its queue need not be

# What one transaction holds at most, unless its only record is larger.
RECORDS: Final = 2_000
BYTES: Final = 4 << 20


class Out(NamedTuple):
    """A record to be written."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0  # 0: now
    headers: tuple[tuple[str, str | bytes | None], ...] = ()

    def size(self) -> int:
        """Return about how many bytes it takes."""
        return len(self.key or b"") + len(self.value or b"") + sum(len(value or b"") for _, value in self.headers)


class Writer:
    """A producer with a transactional id. After an error it is of no more use: what it was to write may be written."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        """Raises `ConfigError` for options that librdkafka does not know."""
        self._id: Final = transactional_id
        self._undelivered: list[KafkaError] = []
        with mapped_errors("opening a writer"):
            self._producer: Final = Producer(
                kafka.client(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=_TIMEOUT_MS,
                    linger_ms=100,
                    message_max_bytes=MAX_MESSAGE_BYTES,
                    queue_buffering_max_messages=_QUEUE_MESSAGES,
                    retry_backoff_ms=2,
                    retry_backoff_max_ms=50,
                    delivery_report_only_error=True,
                )
            )

    def fence(self) -> None:
        """Become the only one that writes under this id; an open transaction of an earlier one is ended.

        Raises `Unavailable`, or as `from_kafka` says.
        """
        self._until_done(self._producer.init_transactions, f"taking over {self._id}")

    def write(self, records: Sequence[Out]) -> None:
        """Write all or nothing.

        Raises:
            OwnershipLost: nothing was written; somebody else has taken over the id.
            Unavailable: nobody knows whether it was written.
            FairstreamError: nothing was written, for a reason as `from_kafka` says.
        """
        doing = f"writing as {self._id}"
        self._undelivered.clear()
        with mapped_errors(doing):
            self._producer.begin_transaction()
            for topic, partition, key, value, timestamp_ms, headers in records:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp_ms,
                    headers=list(headers),
                    on_delivery=self._on_delivery,
                )
        deadline = clock.monotonic() + _PATIENCE_S
        while self._producer.flush(_SLICE_S) > 0:
            if clock.monotonic() > deadline:
                raise Unavailable(f"{doing}: not done after {_PATIENCE_S:g} s")
        if self._undelivered:
            self._abort()
            raise from_kafka(self._undelivered[0], doing)
        self._until_done(self._producer.commit_transaction, doing)

    def _abort(self) -> None:
        self._until_done(self._producer.abort_transaction, f"aborting as {self._id}")

    def _until_done(self, call: Callable[[float], object], doing: str) -> None:
        """Repeat a call as long as repeating it may help."""
        deadline = clock.monotonic() + _PATIENCE_S
        while True:
            why = "Kafka does not answer"
            try:
                call(_SLICE_S)
            except SystemError:
                pass  # confluent-kafka has lost a fatal error, which the next call raises as it should
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                failure = from_kafka(error, doing)
                if error.txn_requires_abort():
                    self._abort()
                    raise failure from raised
                if isinstance(failure, OwnershipLost):
                    raise OwnershipLost(f"{failure}; is another migration, or a scheduler, running?") from raised
                if not error.retriable() and not isinstance(failure, Unavailable):
                    raise failure from raised
                why = error.str()
            else:
                return
            if clock.monotonic() > deadline:
                raise Unavailable(f"{doing}: not done after {_PATIENCE_S:g} s: {why}")

    def _on_delivery(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._undelivered.append(error)


def batches(records: Iterable[Out]) -> Iterator[list[Out]]:
    """Yield the records in bounded batches, in order."""
    batch: list[Out] = []
    size = 0
    for record in records:
        if batch and (size + record.size() > BYTES or len(batch) >= RECORDS):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size()
    if batch:
        yield batch
