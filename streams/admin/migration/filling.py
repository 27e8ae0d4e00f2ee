"""Fills the state partitions of the new shards: what is missing is written, what is not wanted is taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.admin.migration.sides import StatePartition, pair, runtime_keys
from streams.admin.migration.writing import batches
from streams.transactions import Out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streams.admin.migration.sides import Side
    from streams.admin.migration.writing import Writer
    from streams.core.records import Record


def difference(there: dict[bytes, bytes], wanted: Iterable[Record], shard: int, topic: str) -> Iterator[Out]:
    """Yield what makes a state partition hold exactly the wanted rows, beside those that are not the core's.

    In the same order whatever is there, so an earlier try that came less far has written the first ones. One by one,
    since rows as they are written take several times the memory of the records.
    """
    gone = there.keys() - runtime_keys(shard)
    for record in wanted:
        key, value = pair(shard, record)
        gone.discard(key)
        if there.get(key) != value:
            yield Out(topic, shard, key, value)
    for key in sorted(gone):
        yield Out(topic, shard, key, None)


def fill(side: Side, wanted: Sequence[Sequence[Record]], writer: Writer, progress: Callable[[int, int], None]) -> None:
    """Make the state partitions hold the wanted rows, in transactions of bounded size.

    `progress` is told how many of how many rows are there. Raises as `Writer.write` and `read_to_end` do.
    """
    done, of = 0, sum(map(len, wanted))
    progress(done, of)
    for shard, records in enumerate(wanted):
        partition = StatePartition(side, shard)
        partition.read_on()
        written = 0
        for batch in batches(difference(partition.raw, records, shard, side.names.state), Out.size):
            writer.write(batch)
            written += len(batch)
            progress(done + min(written, len(records)), of)
        done += len(records)
        progress(done, of)
