"""Writes a turn's verdicts, and that its records are done with, in one Kafka transaction: both, or neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from streams import clock
from streams.errors import BadRecord, ConfigError, FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.kafka import NO_SUCH_TOPIC, from_kafka, mapped_errors
from streams.wire import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message
    from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined] # exported nowhere by name

    from streams.gate.checking import Verdict
    from streams.kafka import KafkaSettings

# A blocked call into librdkafka can't be interrupted, so it is made in slices, to look at `give_up` in between.
_SLICE_S: Final = 1.0
_ASK_S: Final = 10.0

# A turn is bounded, so its queue need not be: `produce` never finds it full.
_QUEUE_MESSAGES: Final = 1_000_000

# What the group's coordinator says to one that is no member (any more).
_NO_MEMBER: Final = frozenset({"FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"})


OnDelivery = Callable[[KafkaError | None, "Message"], None]


class ProducerLike(Protocol):
    """The part of a transactional `confluent_kafka.Producer` that is used here."""

    def init_transactions(self, timeout: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def produce(
        self,
        topic: str,
        value: bytes,
        key: bytes,
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
    """Return a producer for a `TurnWriter`. Raises `ConfigError` for options that librdkafka does not know."""
    with mapped_errors(f"connecting to {kafka.servers}"):
        producer: ProducerLike = Producer(
            kafka.client(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                # The flush before the commit sends at once. Until then waiting makes larger batches of a turn.
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


class TurnWriter:
    """A transactional producer. After any exception but `BadRecord` and `StepAborted` it is of no more use."""

    def __init__(
        self, producer: ProducerLike, *, patience_s: float, give_up: Callable[[], bool] = lambda: False
    ) -> None:
        """`patience_s` is how long Kafka may take for one answer; `give_up` may end the wait before."""
        self._undelivered: list[KafkaError] = []
        self._producer: Final = producer
        self._patience_s: Final = patience_s
        self._give_up: Final = give_up

    def open(self) -> None:
        """End what an earlier producer with this transactional id has left open, and keep it from writing."""
        self._until_done(self._producer.init_transactions, "opening the gate's transactions")

    def partitions(self, topic: str) -> int:
        """Return how many there are. Raises `ConfigError` if there is no such topic."""
        with mapped_errors("looking for the topics"):
            found = self._producer.list_topics(topic, _ASK_S).topics[topic]
        if found.error is not None or not found.partitions:
            raise ConfigError(NO_SUCH_TOPIC, field="topic", value=topic)
        return len(found.partitions)

    def write(self, verdicts: Sequence[Verdict], offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        """Write all or nothing. `offsets` are those after the last record that is done with, by topic and partition.

        Raises:
            BadRecord: nothing was written, since Kafka does not take one of these records (or more) as it is.
            StepAborted: nothing was written.
            OwnershipLost: nothing was written; the group or a gate of the same name has gone on without us.
            Unavailable: nobody knows whether it was written; where the group's offsets stand tells.
        """
        self._undelivered.clear()
        done = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        try:
            self._producer.begin_transaction()
            for topic, partition, key, value, timestamp_ms, headers, _ in verdicts:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=self._on_delivery, timestamp=timestamp_ms, headers=headers
                )
            self._flush()
            self._until_done(
                lambda timeout_s: self._producer.send_offsets_to_transaction(done, membership, timeout_s),
                "handing in the offsets of a turn",
            )
            self._until_done(self._producer.commit_transaction, "committing a turn")
        except KafkaException as error:
            self._abort(error.args[0])
        except SystemError:
            self._abort(None)  # see `_until_done`: if it was fatal, the abort will say so

    def _flush(self) -> None:
        """Wait until every record is acknowledged. Raises what the first of those failed by that were not."""
        deadline = clock.monotonic() + self._patience_s
        while self._producer.flush(_SLICE_S) > 0:
            self._check_patience(deadline, "writing a turn")
        if self._undelivered:
            raise KafkaException(self._undelivered[0])

    def _abort(self, cause: KafkaError | None) -> NoReturn:
        """End the transaction and say why."""
        self._until_done(self._producer.abort_transaction, "aborting a turn")  # raises what can't be aborted any more
        failure = FairstreamError("its writer failed") if cause is None else _failure(cause, "writing a turn")
        if isinstance(failure, (BadRecord, ConfigError, OwnershipLost)):
            raise failure
        raise StepAborted(f"nothing of the turn was written: {failure}")

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
                failure = _failure(error, doing)
                if error.fatal() or not (error.retriable() or isinstance(failure, Unavailable)):
                    raise failure from raised
                self._check_patience(deadline, doing, error)
            else:
                return

    def _check_patience(self, deadline: float, doing: str, error: KafkaError | None = None) -> None:
        if self._give_up():
            raise Unavailable(f"{doing}: given up, the gate is being closed")
        if clock.monotonic() >= deadline:
            why = error.str() if error is not None else "Kafka does not answer"
            raise Unavailable(f"{doing}: not done after {self._patience_s:g} s: {why}")

    def _on_delivery(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._undelivered.append(error)


def _failure(error: KafkaError, doing: str) -> FairstreamError:
    """Return what a failed call means for the gate."""
    failure = from_kafka(error, doing)
    if error.name() in _NO_MEMBER:
        return OwnershipLost(f"{failure}; the group has gone on without this gate")
    if isinstance(failure, OwnershipLost):
        return OwnershipLost(f"{failure}; was it silent for too long, or does another gate have its --name?")
    # Of a producer that is of no more use. A new one may be, and finds out what was written.
    return Unavailable(str(failure)) if error.fatal() else failure
