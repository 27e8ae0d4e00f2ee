"""Reads whole topics as auditors do: read_committed, to the end."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from confluent_kafka import Message

from streams.headers import headers_of
from streams.kafka import KafkaSettings
from streams.partition import open_reader, read_to_end

_DEADLINE_S: Final = 30.0


class Seen(NamedTuple):
    """One committed record."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    readable: bool = True  # False: the headers cannot be read, and are left out


def read_topic(servers: str, topic: str) -> list[Seen]:
    """Every record that a read_committed reader can see now, partition by partition."""
    (seen,) = read_topics(servers, topic)
    return seen


def read_topics(servers: str, *topics: str) -> list[list[Seen]]:
    """The same of several topics, one after the other in this order."""
    with open_reader(KafkaSettings(servers=servers), "test-reader") as consumer:
        known = consumer.list_topics(timeout=_DEADLINE_S).topics
        return [
            [
                _seen(partition, message)
                for partition in sorted(known[topic].partitions)
                for message in read_to_end(consumer, topic, partition)
            ]
            for topic in topics
        ]


def _seen(partition: int, message: Message) -> Seen:
    offset = message.offset()
    assert offset is not None
    found: Any = headers_of(message)
    headers = tuple(found or ())
    timestamp_ms = message.timestamp()[1]
    return Seen(partition, offset, timestamp_ms, message.key(), message.value(), headers, found is not None)
