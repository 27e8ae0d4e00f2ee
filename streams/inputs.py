"""Reads the inputs of a partition, whatever Kafka has taken from producers that write by no client of ours.

Kafka looks at neither the offset that a record claims inside its batch, nor how large a batch becomes once unpacked.
librdkafka believes the one, and asks for the other again and again. Neither may hold up what stands behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.errors import BatchUnreadable
from streams.partition import bounds, read_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer, Message


def inputs(consumer: Consumer, topic: str, partition: int, start: int) -> Iterator[tuple[int, Message | None]]:
    """Yield offset and record from `start` to the end; None for what is there and cannot be read.

    Raises as `read_to_end` does, but for `BatchUnreadable`.
    """
    _, end = bounds(consumer, topic, partition)
    while True:
        try:
            for message in read_to_end(consumer, topic, partition, start):
                offset = message.offset() or 0
                if offset >= end:
                    _, end = bounds(consumer, topic, partition)  # it may have come since
                if offset < end:
                    yield offset, message
                    start = max(start, offset + 1)
                else:  # made up; this is its place, if nothing is missing before it
                    yield start, None
                    start += 1
        except BatchUnreadable as error:
            start = max(start, error.offset)
            yield start, None
            start += 1  # which may be in the same batch: nobody says where that ends
        else:
            return
