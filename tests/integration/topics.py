"""Reads whole topics as auditors do: read_committed, to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams import clock

_DEADLINE_S: Final = 30.0


class Seen(NamedTuple):
    """One committed record."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def read_topic(servers: str, topic: str) -> list[Seen]:
    """Every record that a read_committed reader can see now, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "test-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=_DEADLINE_S).topics[topic].partitions)
        return [seen for partition in partitions for seen in _read_partition(consumer, topic, partition)]
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, topic: str, partition: int) -> Iterator[Seen]:
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    deadline = clock.monotonic() + _DEADLINE_S
    while clock.monotonic() < deadline:
        for message in consumer.consume(1_000, 0.05):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                assert error.retriable(), error
                continue
            offset = message.offset()
            assert offset is not None
            headers: Any = message.headers() or ()
            yield Seen(partition, offset, message.timestamp()[1], message.key(), message.value(), tuple(headers))
    raise TimeoutError(f"{topic}[{partition}]: no end within {_DEADLINE_S:g} s")
