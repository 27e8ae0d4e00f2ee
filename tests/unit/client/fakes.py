"""Kafka clients by their contracts, in memory, and messages as they hand them out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message, Messages, TopicPartition
from confluent_kafka.admin import ClusterMetadata, TopicMetadata  # type: ignore[attr-defined] # exported nowhere by name

from streams.client.intake import Taken
from streams.client.run import Run
from streams.client.sender import OnDelivery
from streams.client.verdicts import Outcome
from streams.core.effects import Dispatch, Revoke
from streams.wire import Assignment, Revocation, decode_dispatch, encode_dispatch, encode_revoke

WAIT_S = 10  # a test that waits longer has failed


class Clock:
    """Monotonic seconds that tests set; see the fixture `time`."""

    now_s = 0.0


class FakeProducer:
    """Keeps records until it is polled, then reports each as delivered, or as `fail_with` says."""

    def __init__(self, room: int = 1_000) -> None:
        self.room = room
        self.topics = ["p.requests"]
        self.stuck = False  # True: nothing is ever delivered
        self.fail_with: KafkaError | None = None
        self.refuse_with: KafkaError | None = None
        self.sent: list[tuple[str, bytes, bytes]] = []  # topic, key, value
        self.polls = 0
        self._pending: deque[tuple[OnDelivery | None, Message]] = deque()

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: OnDelivery | None) -> None:
        if self.refuse_with is not None:
            raise KafkaException(self.refuse_with)
        if len(self._pending) >= self.room:
            raise BufferError("Local: Queue full")
        self.sent.append((topic, key, value))
        place = Message(topic=topic, partition=0, offset=len(self.sent) - 1, key=key, value=value)
        self._pending.append((on_delivery, place))

    def poll(self, timeout: float) -> int:  # noqa: ARG002 - the contract's
        self.polls += 1
        return self._deliver()

    def flush(self, timeout: float) -> int:  # noqa: ARG002 - the contract's
        self._deliver()
        return len(self._pending)

    def list_topics(self, *, timeout: float) -> ClusterMetadata:
        if self.stuck:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"no answer within {timeout}"))
        metadata = ClusterMetadata()
        metadata.topics = dict.fromkeys(self.topics, TopicMetadata())
        return metadata

    def __len__(self) -> int:
        return len(self._pending)

    def _deliver(self) -> int:
        if self.stuck:
            return 0
        done = 0
        while self._pending:
            on_delivery, message = self._pending.popleft()
            done += 1
            if on_delivery is not None:
                on_delivery(self.fail_with, message)
        return done


class FakeShareConsumer:
    """Hands out what tests put into `polls`; refuses to poll while anything is unacknowledged, as the real one does."""

    def __init__(self, *polls: list[Message]) -> None:
        self.polls = deque(polls)
        self.acknowledged: list[tuple[int, AcknowledgeType]] = []  # offset, how
        self.commits = 0
        self.closed = False
        self._open: set[int] = set()

    def poll(self, timeout: float) -> Messages:  # noqa: ARG002 - the contract's
        assert not self._open, f"polled with unacknowledged records: {self._open}"
        messages = self.polls.popleft() if self.polls else []
        self._open = {message.offset() or 0 for message in messages if message.error() is None}
        return Messages(messages)

    def acknowledge(self, message: Message, ack_type: AcknowledgeType) -> None:
        offset = message.offset() or 0
        self._open.remove(offset)  # KeyError: acknowledged twice
        self.acknowledged.append((offset, ack_type))

    def commit_async(self) -> None:
        self.commits += 1

    def close(self) -> None:
        assert not self._open, f"closed with unacknowledged records: {self._open}"
        self.closed = True


class FakeConsumer:
    """A partition's records in order; a paused one hands out nothing."""

    def __init__(self, *messages: Message) -> None:
        self.messages = deque(messages)
        self.owned = [TopicPartition("runs.dispatch", 0)]
        self.paused = False
        self.polled_while_paused = 0
        self.stored: list[tuple[int, int]] = []  # partition, offset
        self.closed = False

    def consume(self, num_messages: int, timeout: float) -> Sequence[Message]:
        assert timeout == 0, "consume() waits until it has all it was asked for"
        return [self.messages.popleft() for _ in range(min(num_messages, len(self.messages)))]

    def poll(self, timeout: float) -> Message | None:  # noqa: ARG002 - the contract's
        if self.paused:
            self.polled_while_paused += 1
            return None
        return self.messages.popleft() if self.messages else None

    def assignment(self) -> list[TopicPartition]:
        return self.owned

    def pause(self, partitions: list[TopicPartition]) -> None:
        assert partitions == self.owned
        self.paused = True

    def resume(self, partitions: list[TopicPartition]) -> None:
        assert partitions == self.owned
        self.paused = False

    def store_offsets(self, *, offsets: list[TopicPartition]) -> None:
        self.stored += [(each.partition, each.offset) for each in offsets]

    def close(self) -> None:
        self.closed = True


class FakeIntake:
    """Hands out what tests put into `batches`, within the room there is."""

    def __init__(self, *batches: Taken) -> None:
        self.batches = deque(batches)
        self.rooms: list[int] = []
        self.settled = 0
        self.closed = False

    def take(self, room: int, timeout_s: float) -> Taken:  # noqa: ARG002 - the contract's
        self.rooms.append(room)
        taken = self.batches.popleft() if room and self.batches else Taken([], [], [])
        assert len(taken.assignments) <= room
        return taken

    def settle(self) -> None:
        self.settled += 1

    def close(self) -> None:
        self.closed = True


class Ends:
    """What was told about the ends of runs."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[tuple[str, Outcome]] = SimpleQueue()

    def __call__(self, run: Run, outcome: Outcome) -> None:
        self.queue.put((run.run_id, outcome))

    def next(self) -> tuple[str, Outcome]:
        return self.queue.get(timeout=WAIT_S)


def make_run(number: int) -> Run:
    """The run `r<number>`."""
    return Run(make_assignment(f"r{number}"))


def make_dispatch(run_id: str = "r1", **fields: object) -> bytes:
    """The value of a dispatch record."""
    values: dict[str, object] = {
        "tenant": "acme",
        "run_id": run_id,
        "seq": 1,
        "workflow": "summarise",
        "class_": "default",
        "attempt": 1,
        "estimate": 100,
        "lease_ms": 60_000,
        "deadline_ms": None,
        "body": b'{"payload":{"tokens":5}}',
        "submitted_ms": 1,
        "round": 1,
        "deficit_before": 0,
        "deficit_after": 0,
        **fields,
    }
    return encode_dispatch(Dispatch(**values), shard=3, step=7, epoch=1)  # type: ignore[arg-type] # fields by name


def make_assignment(run_id: str = "r1", **fields: object) -> Assignment:
    """A dispatch as a worker gets it."""
    assignment = decode_dispatch(make_dispatch(run_id, **fields))
    assert isinstance(assignment, Assignment)
    return assignment


def make_revoke(run_id: str = "r1", *, tenant: str = "acme", attempt: int = 1) -> bytes:
    """The value of a revocation record."""
    return encode_revoke(Revoke(2, tenant, run_id, attempt, "cancelled"), shard=3, step=8, epoch=1)


def make_revocation(run_id: str = "r1", *, tenant: str = "acme", attempt: int = 1) -> Revocation:
    """A revocation as a worker gets it."""
    revocation = decode_dispatch(make_revoke(run_id, tenant=tenant, attempt=attempt))
    assert isinstance(revocation, Revocation)
    return revocation


def make_message(
    offset: int, value: bytes | None = None, *, deliveries: int = 1, error: KafkaError | None = None
) -> Message:
    """A record of the dispatch topic; without a value, the dispatch of run `r<offset>`."""
    return Message(
        topic="runs.dispatch",
        partition=0,
        offset=offset,
        value=make_dispatch(f"r{offset}") if value is None and error is None else value,
        error=error,
        delivery_count=deliveries,
    )
