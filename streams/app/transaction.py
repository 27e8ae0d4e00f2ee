"""The transactional writer of one shard: all records of a step, or none of them.

The order of what is written stands in one function, `_send`, so there is one place to reason about crash points.
It does not matter to readers (`read_committed`), but it does to the tests that kill us in between.

Ownership is Kafka's: `init_transactions` fences every earlier producer of the same transactional id and ends its
open transaction (KIP-98, KIP-360). Whoever can still commit is the owner, and has been ever since it was fenced in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from streams import clock
from streams.app.faults import Faults, NoFaults
from streams.app.limits import Refused, TopicLimits
from streams.app.producer_errors import final, needs_fence
from streams.errors import NotAuthorized, StepAborted, Unavailable
from streams.kafka import from_kafka
from streams.wire import MAX_MESSAGE_BYTES, PARTITIONER

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from streams.intake import Forward
    from streams.kafka import KafkaSettings
    from streams.wire import TopicNames

# A blocked call into librdkafka can't be interrupted, so it is made in slices, to look at `give_up` in between.
_SLICE_S: Final = 1.0

_FAULT_FLUSH_S: Final = 10.0  # a fault is to find the records with the broker, on a busy machine too

# Beyond the transaction's own timeout the coordinator has ended it: there is nothing left to wait for.
_GRACE_S: Final = 10.0

# So many dispatches of a step go to one partition together, the next ones to the next, whatever their keys: every
# partition that a transaction touches costs it a request, a marker and half a millisecond (eight of them: 12 ms a step
# instead of 6). Not all to one: a share group hands out 2,000 records of a partition at most.
_TOGETHER: Final = 500

# A step's records wait in the producer's queue until it commits. The step is bounded, so the queue need not be:
# `produce` never finds it full.
_QUEUE_MESSAGES: Final = 1_000_000


_TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_FRAME_BYTES: Final = 256  # of a record in its batch, the mark of a forwarded one included, at most


def longest_write_s(timeout_s: float) -> float:
    """Return after how many seconds a write has ended by itself at the latest: it is waited for, then for its abort."""
    return 2 * (timeout_s + _GRACE_S)


@dataclass(slots=True)
class StepRecords:
    """Everything one step writes, encoded: (key, value) pairs but for the forwards."""

    positions: tuple[bytes, bytes]
    rows: list[tuple[bytes, bytes | None]] = field(default_factory=list)  # None: the row is gone
    dispatches: list[tuple[bytes, bytes]] = field(default_factory=list)  # revokes among them, in order of seq
    rejections: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    forwards: list[Forward] = field(default_factory=list)
    journal: tuple[bytes, bytes] | None = None  # None: only the positions are confirmed


class Writer(Protocol):
    """What a shard needs of a writer. `KafkaWriter` is the real one."""

    def fence(self) -> None:
        """Become the only writer. Raises `OwnershipLost` or `Unavailable`."""

    def write(self, records: StepRecords) -> None:
        """Write all or nothing.

        Raises:
            StepAborted: nothing was written, and this is still the shard's writer.
            OwnershipLost: nothing was written, and somebody else is.
            Unavailable: nobody knows whether it was written; only a new fence can tell.
        """

    def give_up(self) -> None:
        """Make a blocked call end soon, by an error. From any thread; final."""


class KafkaWriter:
    """A librdkafka producer with the shard's transactional id. For one thread, but for `give_up`."""

    def __init__(
        self,
        kafka: KafkaSettings,
        names: TopicNames,
        *,
        shard: int,
        transactional_id: str,
        timeout_ms: int,
        faults: Faults | None = None,
        limits: TopicLimits | None = None,
    ) -> None:
        self._names: Final = names
        self._shard: Final = shard
        self._faults: Final = faults or NoFaults()
        self._limits: Final = limits or TopicLimits(names)
        self._unsent = 0  # bytes given to the producer since the last flush; only counted where limits are low
        self._patience_s: Final = timeout_ms / 1000 + _GRACE_S
        self._undelivered: list[tuple[KafkaError, str]] = []  # with the topic
        self._deadline = 0.0  # for the flushes and the commit of the write under way together
        self._given_up = False
        self._dispatch_partitions = 1  # until it is known
        self._turn = shard  # the dispatch partition written last; shards begin with different ones
        self._producer: Final = Producer(
            {
                **kafka.client(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=timeout_ms,
                    partitioner=PARTITIONER,
                    # The flush before the commit sends at once. Until then waiting makes larger batches of a step.
                    linger_ms=100,
                    # What the topics take, batches included: a batch is larger than 1 MB only if its one record is.
                    message_max_bytes=MAX_MESSAGE_BYTES,
                    queue_buffering_max_messages=_QUEUE_MESSAGES,
                    # After a concurrent transaction (the last one's markers being written) the default waits 100 ms.
                    retry_backoff_ms=2,
                    retry_backoff_max_ms=50,
                    # A callback for each record would cost more than the record.
                    delivery_report_only_error=True,
                ),
                # librdkafka has no such property: the Python client takes it out.
                "on_delivery": self._on_delivery,
            }
        )

    def fence(self) -> None:
        """See `Writer`. Takes about half a second, more when an open transaction must be ended first."""
        self._until_done(self._producer.init_transactions, "taking over the shard's transactions")
        self._until_done(self._count_dispatch_partitions, "looking at the dispatch topic")

    def write(self, records: StepRecords) -> None:
        """See `Writer`."""
        faults, flush = self._faults, self._flush_for_fault
        self._check_sizes(records)
        faults.at("before_begin", flush)
        self._undelivered.clear()
        self._deadline = clock.monotonic() + self._patience_s
        try:
            self._producer.begin_transaction()
            self._send(records)
            faults.at("before_commit", flush)
            self._flush()
        except KafkaException as error:
            self._abort(error.args[0])
        except SystemError:
            self._abort(None)  # see `_until_done`: if it was fatal, the abort will say so
        if self._undelivered:
            self._abort(*self._why_undelivered())
        self._commit()
        faults.at("after_commit", flush)

    def give_up(self) -> None:
        """See `Writer`."""
        self._given_up = True

    def _send(self, records: StepRecords) -> None:
        """Rows, then what others read, then the journal, then the positions."""
        names, shard = self._names, self._shard
        produce: Callable[..., None] = self._producer.produce
        if self._limits.batch_bytes is not None:
            produce = self._produce_apart
        state, dispatch = names.state, names.dispatch
        for key, value in records.rows:
            produce(state, value, key, shard)
        self._faults.at("after_rows", self._flush_for_fault)
        for start in range(0, len(records.dispatches), _TOGETHER):
            self._turn = (self._turn + 1) % self._dispatch_partitions
            for key, value in records.dispatches[start : start + _TOGETHER]:
                produce(dispatch, value, key, self._turn)
        self._faults.at("after_dispatches", self._flush_for_fault)
        for rejected_key, value in records.rejections:
            produce(names.rejected, value, rejected_key)
        for forward in records.forwards:
            produce(
                forward.topic,
                forward.value,
                forward.key,
                forward.partition,
                timestamp=forward.timestamp_ms,
                headers=forward.headers,
            )
        if records.journal is not None:
            key, value = records.journal
            produce(names.journal, value, key, shard)
        key, value = records.positions
        produce(state, value, key, shard)

    def _check_sizes(self, records: StepRecords) -> None:
        """Abort a step before it is begun if Kafka is known not to take a dispatch: all of them are noted at once."""
        limits, topic = self._limits, self._names.dispatch
        if limits.largest_body is None:
            return
        if not all([limits.fits(topic, key, value) for key, value in records.dispatches]):  # noqa: C419 - note them all
            raise StepAborted(f"dispatches are larger than {topic} takes, {limits.of(topic)} bytes")

    def _produce_apart(self, topic: str, value: bytes | None, key: bytes | None, *place: Any, **more: Any) -> None:
        """Produce so that no batch is larger than any topic takes: what is sent together is bounded."""
        size = len(key or b"") + len(value or b"") + _FRAME_BYTES
        if self._unsent + size > (self._limits.batch_bytes or 0):
            self._flush()
            self._unsent = 0
        self._unsent += size
        self._producer.produce(topic, value, key, *place, **more)

    def _count_dispatch_partitions(self, timeout_s: float) -> None:
        topic = self._names.dispatch
        self._dispatch_partitions = len(self._producer.list_topics(topic, timeout_s).topics[topic].partitions)

    def _flush(self) -> None:
        """Wait until every record is acknowledged or has failed; failures come to `_on_delivery` meanwhile."""
        while self._producer.flush(_SLICE_S) > 0:
            self._check_patience(self._deadline, "writing a step")

    def _commit(self) -> None:
        try:
            self._until_done(self._producer.commit_transaction, "committing a step", self._deadline)
        except _MustAbort as error:
            self._abort(error.cause)

    def _why_undelivered(self) -> tuple[KafkaError, str]:
        """Return what kept a record of the transaction from being written, and its topic as far as that is known."""
        error, topic = self._undelivered[0]
        if error.code() != KafkaError._PURGE_QUEUE:  # noqa: SLF001 - its public name
            return error, topic
        # librdkafka has given up the transaction, and says why to whoever asks for what is not possible now.
        try:
            self._producer.begin_transaction()
        except KafkaException as refusal:
            return refusal.args[0], ""
        except SystemError:
            pass  # see `_until_done`: it is fatal, and the abort will say so
        return error, ""

    def _abort(self, cause: KafkaError | None, topic: str = "") -> NoReturn:
        """End the transaction; the shard's memory is ahead of its rows now, whatever this raises."""
        if cause is not None and cause.fatal():
            raise final(cause)
        why = None if cause is None else from_kafka(cause, f"writing a step: {topic}" if topic else "writing a step")
        try:
            self._until_done(self._producer.abort_transaction, "aborting a step")
        except Unavailable as error:
            # Kafka never began a transaction that it did not allow, and there is none to abort: the right is the cause.
            raise (why if isinstance(why, NotAuthorized) else error) from error.__cause__
        said = cause.str() if cause is not None else "its writer failed"
        raise StepAborted(f"the step was not written: {said}") from why

    def _until_done(self, call: Callable[[float], object], doing: str, deadline: float | None = None) -> None:
        """Repeat a call as long as repeating it may help, and not beyond the deadline; None: it has one of its own."""
        if deadline is None:
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
                    raise _MustAbort(error) from raised
                failure = final(error)
                if needs_fence(error) or not (error.retriable() or isinstance(failure, Unavailable)):
                    raise failure from raised
                self._check_patience(deadline, doing, error)
            else:
                return

    def _check_patience(self, deadline: float, doing: str, error: KafkaError | None = None) -> None:
        if self._given_up:
            raise Unavailable(f"{doing}: given up, the shard is being closed")
        if clock.monotonic() >= deadline:
            why = error.str() if error is not None else "Kafka does not answer"
            raise Unavailable(f"{doing}: not done after {self._patience_s:g} s: {why}")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._undelivered.append((error, message.topic() or ""))
            if error.code() in _TOO_LARGE:
                self._limits.note(Refused(message.topic() or "", message.key(), message.value()))

    def _flush_for_fault(self) -> None:
        self._producer.flush(_FAULT_FLUSH_S)


class _MustAbort(Exception):
    """The transaction can only be aborted; raised between `_until_done` and its callers."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(cause.str())
        self.cause = cause
