"""Whole steps of a shard: records are read, decided, encoded and given to Kafka's client, as ever.

Their writer may have no broker and drop them (`Sink`): then what it takes to send them, in threads of its own, and the
wait for the answer are not in it. Or it commits each step (`Committer`), and everything is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Producer

from streams import clock
from streams.app.step import Stepper
from streams.app.transaction import KafkaWriter
from streams.bench.bare import TOKENS, WORKFLOW
from streams.bench.load import PAYLOAD
from streams.core.inputs import SUCCEEDED
from streams.core.policy import Limits, Policy, Window
from streams.core.shard import Shard
from streams.intake import Reader, Source
from streams.rows import PositionsRecord, StateHash
from streams.wire import AppliedPolicy, Assignment, decode_dispatch, encode_completion, encode_request, topic_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streams.app.transaction import StepRecords
    from streams.core.effects import Effects
    from streams.intake import InputBatch, InputRecord, Intake
    from streams.kafka import KafkaSettings
    from streams.wire import TopicNames

_BACKLOG: Final = 4  # runs that wait for each that is in flight
_STEP_MS: Final = 10
_BEGUN_MS: Final = 1_000_000
_QUEUED: Final = 1_000_000  # more than a step has, in records and in KB: the producer's queue is never full
_TRANSACTION_MS: Final = 60_000
_ERRORS: Final = 3  # as syslog counts: that there is no broker is known


class Spent(NamedTuple):
    """Seconds that steps took, and of them what is taken for the journal; the bytes of its records."""

    runs: int  # that were requested, dispatched and ended
    whole_s: float  # that the thread computed
    passed_s: float  # by the clock: with the commits, if there are any
    state_s: float  # to hash the rows that change
    record_s: float  # to encode the record, and to work out its digest
    journal_bytes: int
    other_bytes: int  # of all other records: rows, dispatches


class _Record(NamedTuple):
    """A consumed record."""

    offset: int
    value: bytes
    key: bytes
    timestamp: int = _BEGUN_MS
    headers: Sequence[tuple[str, bytes]] = ()


class _Batch(NamedTuple):
    """What has come of one topic."""

    source: Source
    records: Sequence[InputRecord]


class Steps:
    """A shard whose tenants all have runs that wait: each step ends what is in flight, and as much is requested."""

    def __init__(self, tenants: int, runs: int, writer: Counting | None = None) -> None:
        """Take in the backlog. `runs` is how many are in flight, and so how many a step serves."""
        self._tenants: Final = [f"tenant-{number}" for number in range(tenants)]
        names = topic_names("bench.")
        self._writer: Final = writer or Sink(names)
        self._state: Final = _TimedHash()
        self._next = dict.fromkeys(Source, 0)
        self._now_ms = _BEGUN_MS
        reader, reign = Reader(names, 0, 1), PositionsRecord(epoch=1)
        self._stepper: Final = _TimedStepper(Shard(0, 1), reign, self._writer, reader, shard=0, state=self._state)
        policy = Policy(quantum=TOKENS, window=Window(runs=runs), limits=Limits(max_queued_runs=None))
        self._stepper.step([], [AppliedPolicy(0, "bench", _BEGUN_MS, policy)], _BEGUN_MS)
        self._stepper.step([self._requests(_BACKLOG * runs)], (), _BEGUN_MS)

    def take(self, runs: int) -> Spent:
        """Take steps until so many runs have been served, and return what they took."""
        self._writer.forget()
        self._state.seconds = self._stepper.seconds = 0.0
        served, whole_s, passed_s = 0, 0.0, 0.0
        while served < runs:
            batches = [self._completions(), self._requests(len(self._writer.dispatched))]
            served += len(self._writer.dispatched)
            self._now_ms += _STEP_MS
            begun, begun_s = clock.monotonic(), clock.thread_s()
            self._stepper.step(batches, (), self._now_ms)
            whole_s += clock.thread_s() - begun_s
            passed_s += clock.monotonic() - begun
            self._writer.drop()
        writer, state_s, record_s = self._writer, self._state.seconds, self._stepper.seconds
        return Spent(served, whole_s, passed_s, state_s, record_s, writer.journal_bytes, writer.other_bytes)

    def _requests(self, number: int) -> InputBatch:
        tenants = self._tenants
        return self._batch(
            Source.REQUESTS,
            (
                (
                    tenants[at % len(tenants)],
                    encode_request(
                        tenant=tenants[at % len(tenants)], run_id=f"run-{at}", workflow=WORKFLOW, payload=PAYLOAD
                    ),
                )
                for at in range(self._next[Source.REQUESTS], self._next[Source.REQUESTS] + number)
            ),
        )

    def _completions(self) -> InputBatch:
        given = [decode_dispatch(value) for value in self._writer.dispatched]
        return self._batch(
            Source.COMPLETIONS,
            (
                (
                    each.tenant,
                    encode_completion(
                        tenant=each.tenant, run_id=each.run_id, attempt=each.attempt, status=SUCCEEDED, tokens=TOKENS
                    ),
                )
                for each in given
                if isinstance(each, Assignment)
            ),
        )

    def _batch(self, source: Source, values: Iterable[tuple[str, bytes]]) -> InputBatch:
        records = [
            _Record(offset, value, tenant.encode())
            for offset, (tenant, value) in enumerate(values, start=self._next[source])
        ]
        self._next[source] += len(records)
        return _Batch(source, records)


class Counting:
    """A writer that keeps nothing but what the next step, and a report, need to know."""

    def __init__(self) -> None:
        self.dispatched: list[bytes] = []  # by the last step
        self.forget()

    def forget(self) -> None:
        """Count from here on."""
        self.journal_bytes = self.other_bytes = 0

    def drop(self) -> None:
        """Free what waits to be sent, and never will be."""

    def fence(self) -> None:
        """There is nobody else."""

    def give_up(self) -> None:
        """Nothing is waited for."""

    def write(self, records: StepRecords) -> None:
        """Count the bytes of a step."""
        assert records.journal is not None, "a step"
        for key, value in (*records.rows, records.positions, *records.dispatches):
            self.other_bytes += len(key) + len(value or b"")
        self.journal_bytes += sum(map(len, records.journal))
        self.dispatched = [value for _, value in records.dispatches]


class Sink(Counting):
    """Gives the records to a client that has no broker."""

    def __init__(self, names: TopicNames) -> None:
        super().__init__()
        self._names: Final = names
        self._producer: Final = Producer(
            {"queue.buffering.max.messages": _QUEUED, "queue.buffering.max.kbytes": _QUEUED, "log_level": _ERRORS}
        )

    def drop(self) -> None:
        self._producer.purge()
        self._producer.flush()

    def write(self, records: StepRecords) -> None:
        """Produce as `KafkaWriter` does."""
        super().write(records)
        assert records.journal is not None, "a step"
        produce, names = self._producer.produce, self._names
        for key, row in (*records.rows, records.positions):
            produce(names.state, row, key, 0)
        for key, value in records.dispatches:
            produce(names.dispatch, value, key, 0)
        key, value = records.journal
        produce(names.journal, value, key, 0)


class Committer(Counting):
    """Writes each step in a transaction, as a scheduler does."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Fence shard 0 of a deployment of which the topics are there."""
        super().__init__()
        self._writer: Final = KafkaWriter(
            kafka,
            topic_names(kafka.prefix),
            shard=0,
            transactional_id=f"{kafka.prefix}bench",
            timeout_ms=_TRANSACTION_MS,
        )
        self._writer.fence()

    def write(self, records: StepRecords) -> None:
        super().write(records)
        self._writer.write(records)


class _TimedHash(StateHash):
    """A hash that knows how long its changes have taken."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def apply(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        begun = clock.thread_s()
        super().apply(rows)
        self.seconds += clock.thread_s() - begun


class _TimedStepper(Stepper):
    """A stepper that knows how long its journal has taken."""

    seconds = 0.0

    def _journal(self, effects: Effects, intake: Intake, policies: Sequence[AppliedPolicy]) -> tuple[bytes, str]:
        begun = clock.thread_s()
        found = super()._journal(effects, intake, policies)
        self.seconds += clock.thread_s() - begun
        return found
