"""Reads a partition as it stands: every committed record from an offset to the end.

The end can't be told from offsets, since a transaction's marker takes one too: Kafka says when it is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams import clock
from streams.errors import BatchUnreadable, Unavailable
from streams.kafka import from_kafka, mapped_errors

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streams.kafka import KafkaSettings

_CHUNK: Final = 1_000
_WAIT_S: Final = 0.5
_FETCH_MS: Final = 2  # a broker tells of an end after so long; nothing is fetched once it is reached
_SILENCE_S: Final = 20.0  # without any progress: Kafka is not there
_NOT_UNPACKED: Final = frozenset({"_BAD_COMPRESSION", "_BAD_MSG"})
_KNOW_S: Final = 15.0  # for one answer of Kafka's


@contextmanager
def open_reader(kafka: KafkaSettings, name: str) -> Iterator[Consumer]:
    """Give a consumer for `read_to_end`; `name` tells it from others in Kafka's logs. Joins no group."""
    with mapped_errors("opening a reader"):
        consumer = Consumer(
            kafka.client(
                group_id=kafka.reader_group,
                client_id=name,
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                fetch_wait_max_ms=_FETCH_MS,
                fetch_error_backoff_ms=50,
                queued_min_messages=100_000,
                queued_max_messages_kbytes=16_384,  # it is read faster than Kafka gives it; four may read at once
            )
        )
    try:
        yield consumer
    finally:
        consumer.close()


def read_to_end(consumer: Consumer, topic: str, partition: int, start: int = OFFSET_BEGINNING) -> Iterator[Message]:
    """Yield the records from offset `start` to the end, in order; none of them is an error.

    Raises:
        Unavailable: nothing came for 20 s.
        BatchUnreadable: a batch cannot be unpacked, whoever tries.
        FairstreamError: as `from_kafka` says, for what trying again does not mend.
    """
    doing = f"reading {topic}"
    with mapped_errors(doing):
        # An assignment of a topic that the client has not heard of waits half a second for its leader.
        consumer.list_topics(topic, timeout=_KNOW_S)
        consumer.assign([TopicPartition(topic, partition, start)])
    deadline = clock.monotonic() + _SILENCE_S
    while True:
        with mapped_errors(doing):
            # Wait for one, and take what has come with it: `consume(n, timeout)` alone waits until it has n.
            messages = consumer.consume(1, _WAIT_S)
            messages += consumer.consume(_CHUNK, 0.0)
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                consumer.unassign()
                return
            else:
                failure = from_kafka(error, doing)
                if error.name() in _NOT_UNPACKED:
                    raise BatchUnreadable(str(failure), offset=message.offset() or 0)
                if not isinstance(failure, Unavailable):  # librdkafka goes on by itself
                    raise failure
        now = clock.monotonic()
        if messages:
            deadline = now + _SILENCE_S
        elif now > deadline:
            raise Unavailable(f"{doing}: nothing came for {_SILENCE_S:g} s")


def bounds(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return the first offset that is still there, and the one that comes next. Raises as `mapped_errors` does."""
    with mapped_errors(f"looking at {topic}"):
        return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_KNOW_S)
