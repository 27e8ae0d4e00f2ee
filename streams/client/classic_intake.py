"""Assignments from a classic consumer group: for brokers before 4.2, or where a preview is not wanted.

A partition belongs to one worker at a time, so no more workers have work than there are dispatch partitions, and a
worker that is full holds up what waits behind in its partitions. After a worker's sudden death, what it accepted in
the last half second may be handed out a second time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams import clock
from streams.client.intake import Taken, decode_or_skip
from streams.client.polling import raise_unless_passing
from streams.kafka import KafkaSettings, from_exception, mapped_errors
from streams.wire import Assignment, Revocation

if TYPE_CHECKING:
    from confluent_kafka import Message

COMMIT_EVERY_MS: Final = 500

# A worker that is full for longer than this goes on polling, with its partitions paused, so that a rebalance does not
# wait for it. Not sooner, since pausing throws away what has been fetched.
FULL_FOR_S: Final = 1.0


class ConsumerLike(Protocol):
    """The part of `confluent_kafka.Consumer` that is used here."""

    def consume(self, num_messages: int, timeout: float) -> Sequence[Message]: ...

    def poll(self, timeout: float) -> Message | None: ...

    def assignment(self) -> list[TopicPartition]: ...

    def pause(self, partitions: list[TopicPartition]) -> None: ...

    def resume(self, partitions: list[TopicPartition]) -> None: ...

    def store_offsets(self, *, offsets: list[TopicPartition]) -> None: ...

    def close(self) -> None: ...


# What is dispatched to the partitions of a worker that was killed waits so long for another one, and its lease runs. By
# default it is 45 s, most of a lease. Heartbeats go out from a thread of librdkafka's, so a busy function stops none.
_SESSION_MS: Final = 10_000


def open_classic_intake(kafka: KafkaSettings, group: str) -> ClassicIntake:
    """Join the group."""
    with mapped_errors(f"joining the group {group}"):
        consumer = Consumer(
            kafka.client(
                group_id=group,
                isolation_level="read_committed",
                **{
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": True,  # of what settle() has stored
                    "enable.auto.offset.store": False,
                    "auto.commit.interval.ms": COMMIT_EVERY_MS,
                    "partition.assignment.strategy": "cooperative-sticky",
                    "session.timeout.ms": _SESSION_MS,
                    "fetch.wait.max.ms": 50,
                },
            )
        )
        consumer.subscribe([kafka.topics.dispatch])
    return ClassicIntake(consumer)


class ClassicIntake:
    """An `Intake` over a subscribed consumer that stores no offsets by itself."""

    def __init__(self, consumer: ConsumerLike) -> None:
        self._consumer = consumer
        self._early: deque[Message] = deque()  # came while there was no room
        self._unsettled: dict[tuple[str, int], int] = {}  # (topic, partition): offset after the last one taken
        self._full_since_s: float | None = None
        self._paused = False

    def take(self, room: int, timeout_s: float) -> Taken:
        """Poll for as much as there is room for; nothing is held, but what came in spite of a pause."""
        taken = Taken([], [], [])
        try:
            if room <= 0:
                self._stay_a_member()
                return taken
            self._full_since_s = None
            self._go_on()
            while self._early and len(taken.assignments) < room:
                self._read(self._early.popleft(), taken)
            if not taken.assignments:
                # Not consume(room, timeout): that waits until all of the room is filled.
                first = self._consumer.poll(timeout_s)
                rest = self._consumer.consume(room - 1, 0) if first is not None and room > 1 else []
                for message in [first, *rest] if first is not None else []:
                    self._read(message, taken)
        except KafkaException as error:
            raise from_exception(error, "taking dispatches") from error
        return taken

    def settle(self) -> None:
        """Store the offsets; they are committed within `COMMIT_EVERY_MS`, and at close."""
        offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in self._unsettled.items()]
        self._unsettled.clear()
        mine = {(owned.topic, owned.partition) for owned in self._consumer.assignment()} if offsets else set()
        # A partition that has moved meanwhile is its new owner's to count; storing would fail.
        kept = [each for each in offsets if (each.topic, each.partition) in mine]
        if kept:
            with mapped_errors("accepting dispatches"):
                self._consumer.store_offsets(offsets=kept)

    def close(self) -> None:
        """Commit what was settled and leave; the rest is handed out to others."""
        with mapped_errors("leaving the group"):
            self._consumer.close()

    def _read(self, message: Message, taken: Taken) -> None:
        error = message.error()
        if error is not None:
            raise_unless_passing(error, "taking dispatches")
            return
        match decode_or_skip(message):
            case Revocation() as revocation:
                taken.revocations.append(revocation)
            case Assignment() as assignment:
                taken.assignments.append(assignment)
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self._unsettled[topic, partition] = offset + 1

    def _stay_a_member(self) -> None:
        now_s = clock.monotonic()
        self._full_since_s = self._full_since_s or now_s
        if now_s - self._full_since_s < FULL_FOR_S:
            return
        # Each time, since a rebalance may bring partitions that are not paused.
        self._consumer.pause(self._consumer.assignment())
        self._paused = True
        message = self._consumer.poll(0)
        if message is not None:
            self._early.append(message)

    def _go_on(self) -> None:
        if self._paused:
            self._consumer.resume(self._consumer.assignment())
            self._paused = False
