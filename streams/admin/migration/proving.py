"""Proves from what can be read on both sides that nothing was lost and nothing doubled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING

from streams.admin.migration.copying import Origin, origin_of
from streams.admin.migration.sides import INPUTS
from streams.core.resharding import brought_up, last_step_ms
from streams.core.stock import Line, Stock
from streams.inputs import inputs
from streams.partition import bounds, open_reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Consumer

    from streams.admin.migration.sides import ShardRows, Side
    from streams.core.records import PolicyRecord, Record
    from streams.rows import MovedRecord

_SHOWN: Final = 5


def prove_rows(old: Sequence[Sequence[Record]], new: Sequence[Sequence[Record]], policy: PolicyRecord) -> list[Line]:
    """Hold what the new shards know against what the old ones knew, at the time of the latest step.

    Raises `ValueError` for rows that make no shard, or one thing that is in two of them.
    """
    now_ms = last_step_ms(old)
    return _stock(old, policy, now_ms).compare(_stock(new, policy, now_ms))


def _stock(shards: Sequence[Sequence[Record]], policy: PolicyRecord, now_ms: int) -> Stock:
    stock = Stock()
    for shard, records in enumerate(shards):
        stock.add(brought_up(records, shard, len(shards), policy, now_ms))
    return stock


def prove_inputs(old: Side, rows: Sequence[ShardRows], moved: Sequence[MovedRecord], new: Side) -> list[Line]:
    """Hold the copies in the new inputs against the originals that the old shards had not read: one of each.

    Originals and copies are deleted by retention at about the same time, for they are of the same time: what is no
    more in the old topics is not asked for. Raises as `read_to_end` does.
    """
    lines = []
    with open_reader(old.kafka, f"{old.names.state}-proof") as consumer:
        for source in INPUTS:
            topic, copies = old.topic(source), Counter(_origins(consumer, old, new, source))
            originals: set[Origin] = set()
            for shard in range(old.shards):
                first, last = rows[shard].applied(source) + 1, moved[shard].swept.get(source, -1)
                offsets = _offsets(consumer, topic, shard, first, last)
                originals |= {Origin(topic, shard, offset) for offset in offsets}
            known = {origin: times for origin, times in copies.items() if origin in originals or times > 1}
            wrong = sorted(origin for origin in originals | known.keys() if known.get(origin) != 1)
            lines.append(
                Line(
                    f"unread {source}",
                    len(originals),
                    sum(known.values()),
                    tuple(tuple(map(str, origin)) for origin in wrong[:_SHOWN]),
                )
            )
    return lines


def _origins(consumer: Consumer, old: Side, new: Side, source: str) -> Iterator[Origin]:
    """Yield where the copies are from, of those that this old deployment's topic has given."""
    topic = old.topic(source)
    for partition in range(new.shards):
        for _, message in inputs(consumer, new.topic(source), partition, OFFSET_BEGINNING):
            origin = None if message is None else origin_of(message)
            if origin is not None and origin.topic == topic:
                yield origin


def _offsets(consumer: Consumer, topic: str, shard: int, first: int, last: int) -> Iterator[int]:
    """Yield the offsets of the records from `first` to `last` that are still there."""
    low, high = bounds(consumer, topic, shard)
    if last < max(first, low) or max(first, low) >= high:
        return
    for offset, _ in inputs(consumer, topic, shard, max(first, low)):
        if offset > last:
            return
        yield offset
