"""The two sides of a migration: a deployment's topics, and the rows of its shards as they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING

from streams.errors import ConfigError, StateUnreadable
from streams.kafka import transactional_id
from streams.partition import open_reader, read_to_end
from streams.rows import (
    FILLING,
    MOVED,
    POSITIONS,
    FillingRecord,
    MovedRecord,
    PositionsRecord,
    Row,
    RuntimeRow,
    decode,
    decode_key,
    encode,
    encode_key,
    row_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.core.records import Key, Record
    from streams.kafka import KafkaSettings
    from streams.wire import TopicNames

INPUTS = ("requests", "completions")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two deployments."""

    kafka: KafkaSettings
    group: str  # of its schedulers: stem of their transactional ids
    shards: int

    @property
    def names(self) -> TopicNames:
        """The full names of its topics."""
        return self.kafka.topics

    def transactional_id(self, shard: int) -> str:
        """The id whose last owner is the shard's."""
        return transactional_id(self.group, shard)

    def topic(self, source: str) -> str:
        """Return the full name of one of `INPUTS`."""
        name: str = getattr(self.names, source)
        return name


@dataclass(slots=True)
class ShardRows:
    """What a state partition holds."""

    records: list[Record] = field(default_factory=list)  # the core's
    positions: PositionsRecord | None = None
    moved: MovedRecord | None = None
    filling: FillingRecord | None = None

    def applied(self, source: str) -> int:
        """Return the offset of the last input that was applied; -1: none was."""
        return self.positions.applied.get(source, -1) if self.positions is not None else -1


def read_side(side: Side) -> list[ShardRows]:
    """Return the rows of all shards. Raises as `read_shard` does."""
    return [read_shard(side, shard) for shard in range(side.shards)]


def read_shard(side: Side, shard: int) -> ShardRows:
    """Return the rows of a shard. Raises `StateUnreadable`, and as `read_to_end` does."""
    partition = StatePartition(side, shard)
    partition.read_on()
    return decoded(partition.raw, shard, side.names.state)


class StatePartition:
    """A state partition as far as it has been read: to read on takes as long as what has come since."""

    def __init__(self, side: Side, shard: int) -> None:
        self.raw: Final[dict[bytes, bytes]] = {}  # the last value of each key
        self._side: Final = side
        self._shard: Final = shard
        self._next = OFFSET_BEGINNING

    def read_on(self) -> None:
        """Read to the end. Raises as `read_to_end` does."""
        topic = self._side.names.state
        with open_reader(self._side.kafka, f"{topic}-migration") as consumer:
            for message in read_to_end(consumer, topic, self._shard, self._next):
                key, value = message.key() or b"", message.value()
                if value is None:
                    self.raw.pop(key, None)
                else:
                    self.raw[key] = value
                self._next = (message.offset() or 0) + 1

    def about(self) -> ShardRows:
        """Return what it says of itself, and none of the core's records. Raises `StateUnreadable`."""
        said = {key: self.raw[key] for key in runtime_keys(self._shard) if key in self.raw}
        return decoded(said, self._shard, self._side.names.state)


def decoded(raw: dict[bytes, bytes], shard: int, topic: str) -> ShardRows:
    """Return what the rows of a shard say. Raises `StateUnreadable`."""
    rows = ShardRows()
    for key_bytes, value in raw.items():
        owner, key = decode_key(key_bytes)
        if owner != shard:
            raise StateUnreadable(f"partition {shard} of {topic} has a row of shard {owner}")
        row = decode(key, value)
        if not isinstance(row, RuntimeRow):
            rows.records.append(row)
        elif isinstance(row, PositionsRecord):
            rows.positions = row
        elif isinstance(row, MovedRecord):
            rows.moved = row
        else:
            rows.filling = row
    return rows


def pair(shard: int, row: Row) -> tuple[bytes, bytes]:
    """Return key and value of a shard's row."""
    return encode_key(shard, row_key(row)), encode(row)


def key_bytes(shard: int, key: Key) -> bytes:
    """Return the key under which a row of a shard is written."""
    return encode_key(shard, key)


def runtime_keys(shard: int) -> frozenset[bytes]:
    """Return the keys of the rows that are none of the core's."""
    return frozenset(encode_key(shard, (kind,)) for kind in (POSITIONS, MOVED, FILLING))


def shards_of(partitions: dict[str, int], names: TopicNames) -> int:
    """Return how many shards the deployment with these topics has. Raises `ConfigError` if it is none."""
    sharded: Iterable[str] = (names.requests, names.completions, names.journal, names.state)
    missing = [name for name in (*sharded, names.dispatch, names.policy) if name not in partitions]
    if missing:
        raise ConfigError(f"no deployment is there: {missing[0]} is missing", field="prefix")
    counts = {partitions[name] for name in sharded}
    if len(counts) > 1:
        told = ", ".join(f"{name} has {partitions[name]}" for name in sharded)
        raise ConfigError(f"its topics do not have the same number of partitions: {told}", field="prefix")
    return counts.pop()
