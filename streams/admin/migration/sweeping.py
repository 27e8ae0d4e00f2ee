"""Copies what stands unread in the old inputs to the new ones, each record exactly once.

Copies and how far they have come are written in one transaction: the latter into the old state partition, for it is the
old shard's inputs that are counted. Each copy says where it is from, so that it can be proved.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.admin.migration.sides import INPUTS, pair
from streams.admin.migration.writing import BYTES, RECORDS, Out
from streams.errors import BadRecord
from streams.partition import bounds, open_reader, read_to_end
from streams.wire import decode_completion, decode_request, partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Consumer, Message

    from streams.admin.migration.sides import Side
    from streams.admin.migration.writing import Writer
    from streams.rows import MovedRecord

# A record header; its value is "topic:partition:offset" of the original, as UTF-8.
MOVED_FROM: Final = "fairstream-moved-from"

Place = tuple[str, int]  # topic without prefix, old partition


class Swept(NamedTuple):
    """What one pass has copied."""

    moved: list[MovedRecord]  # of the old shards, as they are now
    copied: Counter[Place]
    expired: Counter[Place]  # offsets that were deleted by retention and never read, also not by a scheduler


class Sweep:
    """Copies from all partitions of the old side; `moved` are its shards' rows."""

    def __init__(self, old: Side, new: Side, moved: list[MovedRecord], writer: Writer) -> None:
        self._old: Final = old
        self._new: Final = new
        self._moved: Final = list(moved)
        self._writer: Final = writer

    def once(self, progress: Callable[[int], None]) -> Swept:
        """Copy what is there now; `progress` is told how many so far. Raises as `read_to_end` and `Writer.write` do."""
        swept = Swept(self._moved, Counter(), Counter())
        with open_reader(self._old.kafka, f"{self._old.names.state}-sweep") as consumer:
            for shard in range(self._old.shards):
                for source in INPUTS:
                    for number in self._partition(consumer, shard, source, swept):
                        swept.copied[source, shard] += number
                        progress(sum(swept.copied.values()))
        return swept

    def _partition(self, consumer: Consumer, shard: int, source: str, swept: Swept) -> Iterator[int]:
        """Copy one partition; yield the number of records of each transaction once it is written."""
        topic = self._old.topic(source)
        start = self._moved[shard].swept.get(source, -1) + 1
        low, high = bounds(consumer, topic, shard)
        if start < low:
            swept.expired[source, shard] += low - start
        if max(start, low) >= high:
            return
        batch: list[Out] = []
        size = 0
        last = start - 1
        for message in read_to_end(consumer, topic, shard, max(start, low)):
            copy = self._copy(message, source, shard)
            if batch and (size + copy.size() > BYTES or len(batch) >= RECORDS):
                self._write(batch, shard, source, last)
                yield len(batch)
                batch, size = [], 0
            batch.append(copy)
            size += copy.size()
            last = message.offset() or 0
        if batch:
            self._write(batch, shard, source, last)
            yield len(batch)

    def _write(self, batch: list[Out], shard: int, source: str, last: int) -> None:
        before = self._moved[shard]
        after = replace(before, swept={**before.swept, source: last})
        key, value = pair(shard, after)
        self._writer.write([*batch, Out(self._old.names.state, shard, key, value)])
        self._moved[shard] = after

    def _copy(self, message: Message, source: str, shard: int) -> Out:
        topic, offset = self._old.topic(source), message.offset()
        headers = (*(message.headers() or ()), (MOVED_FROM, f"{topic}:{shard}:{offset}".encode()))
        home = home_of(message, source, self._new.shards)
        timestamp_ms = max(message.timestamp()[1], 0)
        return Out(self._new.topic(source), home, message.key(), message.value(), timestamp_ms, headers)


def home_of(message: Message, source: str, shards: int) -> int:
    """Return the partition of a record's tenant; of one that has none, since it cannot be read, any: it is refused."""
    try:
        if source == "requests":
            tenant = decode_request(message.key(), message.value(), 0, 0).tenant
        else:
            tenant = decode_completion(message.key(), message.value(), 0).tenant
    except BadRecord:
        return (message.partition() or 0) % shards
    return partition_for(tenant, shards)
