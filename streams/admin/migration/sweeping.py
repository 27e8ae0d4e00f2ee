"""Copies what stands unread in the old inputs to the new ones, each record exactly once.

Copies and how far they have come are written in one transaction: the latter into the old state partition, for it is the
old shard's inputs that are counted. Each copy says where it is from, so that it can be proved.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.admin.migration.copying import Origin, copy_of
from streams.admin.migration.sides import INPUTS, pair
from streams.admin.migration.writing import batches
from streams.inputs import inputs
from streams.partition import bounds, open_reader
from streams.transactions import Out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Consumer

    from streams.admin.migration.sides import Side
    from streams.admin.migration.writing import Writer
    from streams.rows import MovedRecord

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
            self._write([], shard, source, low - 1)  # so that the next pass does not count them again
            swept.expired[source, shard] += low - start
            start = low
        if start >= high:
            return
        found = inputs(consumer, topic, shard, start)
        copies = (
            (offset, copy_of(message, Origin(topic, shard, offset), source, self._new)) for offset, message in found
        )
        last = start - 1
        for batch in batches(copies, lambda each: each[1].size()):
            last = max(last, *(offset for offset, _ in batch))
            self._write([copy for _, copy in batch], shard, source, last)
            yield len(batch)

    def _write(self, batch: list[Out], shard: int, source: str, last: int) -> None:
        before = self._moved[shard]
        after = replace(before, swept={**before.swept, source: last})
        key, value = pair(shard, after)
        self._writer.write([*batch, Out(self._old.names.state, shard, key, value)])
        self._moved[shard] = after
