"""Takes records from all intake topics by turns, so that nobody's flood holds up the others.

A turn takes at most a share of each topic. When a topic's share is used up, its partitions are paused until the next
turn: what has been fetched of it is thrown away and fetched again, and nothing waits behind it. So the record that a
tenant writes waits, once it is fetched, for the turn under way and then for one share of each other tenant at most,
whatever they have written. What a turn took is held only until it is written, so memory is bounded whatever is sent.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streams.client.polling import raise_unless_passing
from streams.errors import OwnershipLost
from streams.gate.checking import Arrived
from streams.headers import headers_of
from streams.kafka import from_exception, mapped_errors
from streams.wire import intake_pattern

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from streams.kafka import KafkaSettings

_LOG: Final = logging.getLogger("streams.gate")

# Of one topic in one turn; of bytes always as many as the first record has.
SHARE_RECORDS: Final = 500
SHARE_BYTES: Final = 1024 * 1024
# Of all topics in one turn. A transaction of so much is committed in some 30 ms.
TURN_RECORDS: Final = 4_000
TURN_BYTES: Final = 8 * 1024 * 1024

# What the client may fetch ahead: for one partition at a time (a larger batch comes whole), from one broker at a time,
# and altogether before it asks for more.
_PARTITION_FETCH: Final = 256 * 1024
_BROKER_FETCH: Final = 16 * 1024 * 1024
_AHEAD_KB: Final = 16 * 1024
_AHEAD_RECORDS: Final = 1_000

# In librdkafka's form of a group's metadata ("CGMDv2:", generation, ...); -1 for who is no member.
_GENERATION: Final = slice(7, 11)
_NO_GENERATION: Final = b"\xff\xff\xff\xff"

# A topic that was deleted under us is nothing to stop for.
_GONE: Final = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})

OnPartitions = Callable[[Consumer, list[TopicPartition]], None]


class ConsumerLike(Protocol):
    """The part of `confluent_kafka.Consumer` that is used here."""

    def subscribe(
        self, topics: list[str], *, on_assign: OnPartitions, on_revoke: OnPartitions, on_lost: OnPartitions
    ) -> None: ...

    def poll(self, timeout: float) -> Message | None: ...

    def pause(self, partitions: list[TopicPartition]) -> None: ...

    def resume(self, partitions: list[TopicPartition]) -> None: ...

    def consumer_group_metadata(self) -> bytes: ...

    def close(self) -> None: ...


def open_consumer(kafka: KafkaSettings, group: str, *, session_timeout_ms: int, look_every_ms: int) -> Consumer:
    """Return a consumer for `Turns`. New topics are looked for every `look_every_ms`."""
    with mapped_errors(f"joining the group {group}"):
        return Consumer(
            kafka.client(
                group_id=group,
                isolation_level="read_committed",
                session_timeout_ms=session_timeout_ms,
                heartbeat_interval_ms=max(session_timeout_ms // 3, 1),
                topic_metadata_refresh_interval_ms=look_every_ms,
                # An intake that is new to us is read from its first record.
                auto_offset_reset="earliest",
                # Offsets are committed in the transaction of what they stand for, and nowhere else.
                enable_auto_commit=False,
                enable_auto_offset_store=False,
                # Of each topic's one partition; `range` would give all of them to one member. Not a cooperative one:
                # membership and partitions change together here, see `Turns`.
                partition_assignment_strategy="roundrobin",
                fetch_wait_max_ms=50,
                max_partition_fetch_bytes=_PARTITION_FETCH,
                fetch_max_bytes=_BROKER_FETCH,
                queued_min_messages=_AHEAD_RECORDS,
                queued_max_messages_kbytes=_AHEAD_KB,
                # How long the client does not look whether it may fetch again: a second by default, for all topics.
                fetch_queue_backoff_ms=5,
            )
        )


class Turns:
    """Reads as a member of the group, for one thread.

    The membership under which records were read is part of their transaction (KIP-447), so that one of a gate that has
    been given up for dead fails. It is taken when the partitions are, never later: the two belong together, and what a
    client shows once it has been thrown out may be no membership at all, with which Kafka takes any offsets.
    """

    def __init__(self, consumer: ConsumerLike, prefix: str) -> None:
        """Join. Partitions come during `take`."""
        self._consumer: Final = consumer
        self._membership: bytes | None = None
        self._mine: dict[str, list[TopicPartition]] = {}  # by topic
        self._paused: set[str] = set()  # topics; also of others, see `_go_on`
        self._records: list[Arrived] = []  # of the turn under way
        with mapped_errors("subscribing to the intake topics"):
            consumer.subscribe(
                [intake_pattern(prefix)], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )

    @property
    def topics(self) -> int:
        """How many intake topics are read here."""
        return len(self._mine)

    @property
    def membership(self) -> bytes:
        """What Kafka is to compare when the last turn's offsets are committed. Raises `OwnershipLost` without one."""
        if self._membership is None or self._membership[_GENERATION] == _NO_GENERATION:
            raise OwnershipLost("the group has gone on without this gate")
        return self._membership

    def take(self, timeout_s: float) -> list[Arrived]:
        """Return the next turn's records, in order for each partition; none if none came within `timeout_s`.

        The records of the last turn count as done with. Raises what makes the consumer unable to go on.
        """
        self._records = []
        used: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])  # topic -> records, bytes
        total, wait_s = 0, timeout_s
        try:
            self._go_on()
            while len(self._records) < TURN_RECORDS and total < TURN_BYTES:
                message = self._consumer.poll(wait_s)
                if message is None:
                    break
                error = message.error()
                if error is not None:
                    _raise_unless_passing(error)
                    break
                wait_s = 0.0
                record = _arrived(message)
                self._records.append(record)
                size = len(record.value or b"") + len(record.key or b"")
                total += size
                share = used[record.topic]
                share[0] += 1
                share[1] += size
                if share[0] >= SHARE_RECORDS or share[1] >= SHARE_BYTES:
                    self._pause(record.topic)
        except KafkaException as error:
            raise from_exception(error, "reading the intake topics") from error
        return self._records

    def close(self) -> None:
        """Leave the group; nothing is committed by that."""
        with mapped_errors("leaving the group"):
            self._consumer.close()

    def _go_on(self) -> None:
        """Resume what is ours. What was paused and taken away is still paused if it comes back to us."""
        ours = self._paused & self._mine.keys()
        if ours:
            self._paused -= ours
            self._consumer.resume([each for topic in ours for each in self._mine[topic]])

    def _pause(self, topic: str) -> None:
        if topic not in self._paused:
            self._paused.add(topic)
            self._consumer.pause(self._mine[topic])

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        mine: defaultdict[str, list[TopicPartition]] = defaultdict(list)
        for each in partitions:
            mine[each.topic].append(each)
        self._mine = dict(mine)
        self._membership = consumer.consumer_group_metadata()
        _LOG.info("streams.gate.assigned topics=%d", len(mine))

    def _revoked(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        """Forget what belongs to the next owner: all, since this protocol gives everything back."""
        self._records.clear()
        self._mine = {}
        self._membership = None


def _arrived(message: Message) -> Arrived:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return Arrived(
        topic, partition, offset, message.timestamp()[1], message.key(), message.value(), headers_of(message)
    )


def _raise_unless_passing(error: KafkaError) -> None:
    if error.name() in _GONE:
        _LOG.warning("streams.gate.gone: %s", error.str())
        return
    raise_unless_passing(error, "reading the intake topics")
