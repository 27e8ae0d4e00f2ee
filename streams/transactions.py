"""Writes records in Kafka transactions: all of each, or nothing. For the gate and for migrations.

confluent-kafka's calls end early, fail, and forget why; what each of that means stands here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from streams import clock
from streams.errors import BadRecord, ConfigError, FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.kafka import from_kafka, mapped_errors
from streams.wire import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined] # exported nowhere by name

    from streams.kafka import KafkaSettings

# A blocked call into librdkafka can't be interrupted, so it is made in slices, to look at `give_up` in between.
_SLICE_S: Final = 1.0

# A transaction is bounded by whoever writes it, so its queue need not be: `produce` never finds it full.
_QUEUE_MESSAGES: Final = 1_000_000

OnDelivery = Callable[[KafkaError | None, "Message"], None]
Meaning = Callable[[KafkaError, str], FairstreamError]


class Out(NamedTuple):
    """A record to be written."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0  # 0: now
    headers: Sequence[tuple[str, str | bytes | None]] = ()

    def size(self) -> int:
        """Return about how many bytes it takes."""
        return len(self.key or b"") + len(self.value or b"") + sum(len(value or b"") for _, value in self.headers)


class ProducerLike(Protocol):
    """The part of a transactional `confluent_kafka.Producer` that is used here and by those who write."""

    def init_transactions(self, timeout: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *,
        on_delivery: OnDelivery,
        timestamp: int,
        headers: list[tuple[str, str | bytes | None]],
    ) -> None: ...

    def flush(self, timeout: float) -> int: ...

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: bytes, timeout: float
    ) -> None: ...

    def commit_transaction(self, timeout: float) -> None: ...

    def abort_transaction(self, timeout: float) -> None: ...

    def list_topics(self, topic: str, timeout: float) -> ClusterMetadata: ...


def open_producer(kafka: KafkaSettings, transactional_id: str, *, timeout_ms: int) -> ProducerLike:
    """Return a producer for `Transactions`, each of which Kafka ends after `timeout_ms` of silence.

    Raises `ConfigError` for options that librdkafka does not know.
    """
    with mapped_errors(f"connecting to {kafka.servers}"):
        producer: ProducerLike = Producer(
            kafka.client(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                # The flush before the commit sends at once. Until then waiting makes larger batches.
                linger_ms=100,
                message_max_bytes=MAX_MESSAGE_BYTES,
                queue_buffering_max_messages=_QUEUE_MESSAGES,
                # After a concurrent transaction (the last one's markers being written) the default waits 100 ms.
                retry_backoff_ms=2,
                retry_backoff_max_ms=50,
                delivery_report_only_error=True,
            )
        )
    return producer


class Transactions:
    """One after the other, by a producer that is of no more use after any exception but those that `write` names."""

    def __init__(
        self,
        producer: ProducerLike,
        what: str,
        *,
        patience_s: float,
        meaning: Meaning = from_kafka,
        give_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """`what` a transaction is, for people. `patience_s` is how long Kafka may take for one answer; `give_up` may
        end the wait before. `meaning` says what an error means for the writer, as `from_kafka`, which it calls.
        """
        self._producer: Final = producer
        self._what: Final = what
        self._patience_s: Final = patience_s
        self._meaning: Final = meaning
        self._give_up: Final = give_up
        self._undelivered: list[KafkaError] = []

    def fence(self, doing: str) -> None:
        """End what an earlier producer with this transactional id has left open, and keep it from writing.

        Raises `Unavailable`, or as `meaning` says.
        """
        self._until_done(self._producer.init_transactions, doing)

    def write(self, records: Iterable[Out], offsets: tuple[list[TopicPartition], bytes] | None = None) -> None:
        """Write all or nothing; and with it `offsets`, of a group, under a membership.

        Raises:
            BadRecord: nothing was written, since Kafka does not take one of these records (or more) as it is. The
                producer may go on.
            StepAborted: nothing was written. The producer may go on.
            OwnershipLost: nothing was written; somebody else has taken over.
            Unavailable: nobody knows whether it was written.
            FairstreamError: nothing was written, for a reason as `meaning` says.
        """
        self._undelivered.clear()
        try:
            self._producer.begin_transaction()
            for topic, partition, key, value, timestamp_ms, headers in records:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=self._on_delivery,
                    timestamp=timestamp_ms,
                    headers=list(headers),
                )
            self._flush()
            if offsets is not None:
                positions, membership = offsets
                self._until_done(
                    lambda timeout_s: self._producer.send_offsets_to_transaction(positions, membership, timeout_s),
                    f"handing in the offsets of {self._what}",
                )
            self._until_done(self._producer.commit_transaction, f"committing {self._what}")
        except KafkaException as error:
            self._abort(error.args[0])
        except SystemError:
            self._abort(None)  # see `_until_done`: if it was fatal, the abort will say so

    def _flush(self) -> None:
        """Wait until every record is acknowledged. Raises what the first of those failed by that were not."""
        deadline, doing = clock.monotonic() + self._patience_s, f"writing {self._what}"
        while self._producer.flush(_SLICE_S) > 0:
            self._check_patience(deadline, doing)
        if self._undelivered:
            raise KafkaException(self._undelivered[0])

    def _abort(self, cause: KafkaError | None) -> NoReturn:
        """End the transaction and say why."""
        # Raises what can't be aborted any more.
        self._until_done(self._producer.abort_transaction, f"aborting {self._what}")
        doing = f"writing {self._what}"
        failure = FairstreamError("its writer failed") if cause is None else self._meaning(cause, doing)
        if isinstance(failure, (BadRecord, ConfigError, OwnershipLost)):
            raise failure
        raise StepAborted(f"nothing was written: {failure}")

    def _until_done(self, call: Callable[[float], object], doing: str) -> None:
        """Repeat a call as long as that may help. Raises `KafkaException` if the transaction must be aborted."""
        deadline = clock.monotonic() + self._patience_s
        while True:
            try:
                call(_SLICE_S)
            except SystemError:
                # A fatal error that comes up inside a call is lost by confluent-kafka ("returned NULL without setting
                # an exception"). The producer keeps it, so the next call raises it as it should.
                self._check_patience(deadline, doing)
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if error.txn_requires_abort():
                    raise
                failure = self._meaning(error, doing)
                if error.fatal() or not (error.retriable() or isinstance(failure, Unavailable)):
                    raise failure from raised
                self._check_patience(deadline, doing, error)
            else:
                return

    def _check_patience(self, deadline: float, doing: str, error: KafkaError | None = None) -> None:
        if self._give_up():
            raise Unavailable(f"{doing}: given up, it is being closed")
        if clock.monotonic() >= deadline:
            why = error.str() if error is not None else "Kafka does not answer"
            raise Unavailable(f"{doing}: not done after {self._patience_s:g} s: {why}")

    def _on_delivery(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._undelivered.append(error)
