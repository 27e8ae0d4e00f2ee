"""Fills the state partitions of the new shards: what is missing is written, what is not wanted is taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.admin.migration.sides import StatePartition, pair, runtime_keys
from streams.admin.migration.writing import Out, batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streams.admin.migration.sides import Side
    from streams.admin.migration.writing import Writer
    from streams.core.records import Record


def difference(there: dict[bytes, bytes], wanted: Iterable[Record], shard: int, topic: str) -> list[Out]:
    """Return what makes a state partition hold exactly the wanted rows, beside those that are not the core's.

    The same rows in the same order whatever is there, so an earlier try that came less far has written the first ones.
    """
    rows = dict(pair(shard, record) for record in wanted)
    kept = runtime_keys(shard)
    gone = sorted(key for key in there if key not in rows and key not in kept)
    changed = [(key, value) for key, value in rows.items() if there.get(key) != value]
    return [Out(topic, shard, key, None) for key in gone] + [Out(topic, shard, key, value) for key, value in changed]


def fill(side: Side, wanted: Sequence[Sequence[Record]], writer: Writer, progress: Callable[[int, int], None]) -> None:
    """Make the state partitions hold the wanted rows, in transactions of bounded size.

    `progress` is told how many records have been written, of how many. Raises as `Writer.write` and `read_to_end` do.
    """
    todo = []
    for shard, records in enumerate(wanted):
        partition = StatePartition(side, shard)
        partition.read_on()
        todo += difference(partition.raw, records, shard, side.names.state)
    done = 0
    progress(done, len(todo))
    for batch in batches(todo):
        writer.write(batch)
        done += len(batch)
        progress(done, len(todo))
