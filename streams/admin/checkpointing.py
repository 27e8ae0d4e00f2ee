"""Writes checkpoints: copies a shard's state partition into the topic that keeps them, beside whoever serves the shard.

Nothing of it is in the path of a step, and nothing is fenced: the copy is of what is committed. Whoever else writes one
of the same shard at the same time does no harm, since each is told by its id.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Producer

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.audit.checkpoints import Copy
from streams.errors import ConfigError, StateUnreadable, Unavailable
from streams.kafka import NO_SUCH_TOPIC, from_kafka, mapped_errors
from streams.partition import bounds, open_reader, read_to_end
from streams.rows.checkpoint import Foot, Pair, decode_part, encode_part
from streams.wire import MAX_MESSAGE_BYTES, STATE_DELETIONS_KEPT_MS

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

    from streams.kafka import KafkaSettings

# After it, Kafka may soon forget the deletions of what was read first: see `streams.app.loading`.
_READ_S: Final = STATE_DELETIONS_KEPT_MS / 1000 / 2
_WRITE_S: Final = 60.0  # a broker's restart
_KNOW_MS: Final = 3_000  # a topic that is not known after this time is not there, rather than new
_ID_DIGITS: Final = 16
# A transaction ends partition by partition. So the journal may show one step that the state does not show yet, and no
# more, since the next transaction waits. It has two offsets there: its record's, and its marker's.
_ONE_STEP: Final = 2

# Is called after each row, and told whether it is one that was written meanwhile; may pause, and may raise to give up.
Between = Callable[[bool], object]


class Last(NamedTuple):
    """What stands at the end of a shard's checkpoints."""

    written_ms: int
    foot: Foot | None  # None: a checkpoint is being written, or was given up


def last_of(kafka: KafkaSettings, consumer: Consumer, shard: int) -> Last | None:
    """Return the last record of a shard's checkpoints; None if there is none.

    Raises `ConfigError` if the topic is not there, or may not be seen; `Unavailable` if Kafka does not answer.
    """
    topic = kafka.topics.checkpoints
    first, end = bounds(consumer, topic, shard)
    if first == end:
        return None
    for message in read_to_end(consumer, topic, shard, end - 1):
        return Last(message.timestamp()[1], _foot_of(message))
    return None  # its time has just run out


def write_checkpoint(
    kafka: KafkaSettings, shard: int, *, between: Between = lambda _late: None, filled: bool = False
) -> Foot | None:
    """Write a checkpoint of what a shard's state is now, and return its foot; None if it has no state yet.

    `filled`: the rows are all there, although the shard still says that it is being filled. Memory is bounded.

    Raises:
        ConfigError: the topic is not there, or we may not write to it; or the shard is being filled by a migration.
        StateUnreadable: the rows are none.
        Unavailable: Kafka does not answer, or is too slow for what it gives to be trusted.
        FairstreamError: as `from_kafka` says.
    """
    names = kafka.topics
    with open_reader(kafka, f"{names.checkpoints}-writer") as consumer:
        bounds(consumer, names.checkpoints, shard)  # a producer would have the topic made, as Kafka makes topics
        first, state_end = bounds(consumer, names.state, shard)
        _, journal_end = bounds(consumer, names.journal, shard)
        journal_end = max(0, journal_end - _ONE_STEP)
        if first == state_end:
            return None
        copy = Copy(
            uuid.uuid4().hex[:_ID_DIGITS],
            shard,
            begun_ms=clock.now_ms(),
            state_end=state_end,
            journal_end=journal_end,
            filled=filled,
        )
        sink = _Sink(kafka, names.checkpoints, shard)
        head = sink.put(encode_part(copy.head()))
        for chunk in copy.chunks(_pairs(consumer, names.state, shard, state_end, between)):
            sink.put(chunk)
        foot = copy.foot(head)
        sink.put(encode_part(foot))
    return foot


def shards_to_copy(kafka: KafkaSettings, asked: Sequence[int] | None) -> Sequence[int]:
    """Return which shards to write checkpoints of: those that are asked for, None: all.

    Raises `ConfigError` if there is no such shard, or no topic for them; `Unavailable` if Kafka does not answer.
    """
    names = kafka.topics
    partitions = look(admin_client(kafka)).partitions
    for name in (names.state, names.journal, names.checkpoints):
        if name not in partitions:
            raise ConfigError(NO_SUCH_TOPIC, field=name)
    shards = range(partitions[names.state])
    wrong = [shard for shard in asked or () if shard not in shards]
    if wrong:
        raise ConfigError(f"there are {len(shards)}, from 0", field="shard", value=wrong[0])
    return sorted({*asked}) if asked else shards


def _pairs(consumer: Consumer, topic: str, shard: int, end: int, between: Between) -> Iterator[Pair]:
    """Yield the rows to the end as it is when it is reached: what stood at an earlier one may be compacted by then."""
    deadline = clock.monotonic() + _READ_S
    for message in read_to_end(consumer, topic, shard):
        yield message.key() or b"", message.value()
        between((message.offset() or 0) >= end)
        if clock.monotonic() > deadline:
            raise Unavailable(f"{topic}, partition {shard}: not read within {_READ_S:g} s")


def _foot_of(message: Message) -> Foot | None:
    try:
        part = decode_part(message.value())
    except StateUnreadable:
        return None
    return part if isinstance(part, Foot) else None


class _Sink:
    """Writes one record after the other, each once it is known that the last one has arrived."""

    def __init__(self, kafka: KafkaSettings, topic: str, shard: int) -> None:
        self._topic: Final = topic
        self._shard: Final = shard
        self._key: Final = str(shard).encode()
        self._outcome: list[tuple[KafkaError | None, Message]] = []
        with mapped_errors(f"opening a writer of {topic}"):
            self._producer: Final = Producer(
                kafka.client(
                    acks="all",
                    enable_idempotence=True,
                    compression_type="lz4",
                    linger_ms=0,
                    message_max_bytes=MAX_MESSAGE_BYTES,
                    message_timeout_ms=int(_WRITE_S * 1000),
                    topic_metadata_propagation_max_ms=_KNOW_MS,
                )
            )

    def put(self, value: bytes) -> int:
        """Write a record, and return its offset."""
        doing = f"writing {self._topic}"
        self._outcome.clear()
        with mapped_errors(doing):
            self._producer.produce(
                self._topic,
                value,
                self._key,
                self._shard,
                on_delivery=lambda error, message: self._outcome.append((error, message)),
            )
            self._producer.flush(_WRITE_S + 5)  # longer than the message's own timeout: librdkafka has the last word
        if not self._outcome:
            raise Unavailable(f"{doing}: Kafka does not answer")
        error, message = self._outcome[0]
        if error is not None:
            raise from_kafka(error, doing)
        offset = message.offset()
        assert offset is not None, "what has arrived has one"
        return offset
