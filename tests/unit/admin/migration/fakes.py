"""A Kafka of lists, for what a migration reads and writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from streams import inputs
from streams.admin import checkpointing
from streams.admin.migration import fencing, migrate, proving, sides, sweeping
from streams.admin.migration.sides import Side
from streams.errors import BatchUnreadable, OwnershipLost
from streams.kafka import KafkaSettings
from streams.transactions import Out

OLD = Side(KafkaSettings(servers="nowhere:1", prefix="a."), "fairstream-a", 2)
NEW = Side(KafkaSettings(servers="nowhere:1", prefix="b."), "fairstream-b", 3)


class Crash(Exception):
    """The process is killed."""


class FakeMessage:
    def __init__(self, record: Out, offset: int) -> None:
        self._record = record
        self._offset = offset

    def key(self) -> bytes | None:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return self._record.partition

    def timestamp(self) -> tuple[int, int]:
        return 1, self._record.timestamp_ms

    def headers(self) -> list[tuple[str, Any]]:
        if self._record.headers is None:  # names that are no text
            raise SystemError("<method 'headers'> returned a result with an exception set")
        return list(self._record.headers)


class FakeKafka:
    """Partitions, and transactional writers, of which any may crash before one of its transactions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions: defaultdict[tuple[str, int], list[Out]] = defaultdict(list)
        self.first: dict[tuple[str, int], int] = {}  # offset of the first record that retention has left
        self.made_up: dict[tuple[str, int, int], int] = {}  # offsets that records claim, by their true place
        self.unreadable: dict[tuple[str, int, int], int] = {}  # offset of the first record of the same batch, by place
        self.transactions: list[list[Out]] = []
        self.crash_at: int | None = None  # the number of a transaction
        self.owners: dict[str, object] = {}  # by transactional id
        # Called with topic, partition and the number of records when some have been read.
        self.on_read: Callable[[str, int, int], None] = lambda _topic, _partition, _number: None
        for module in (sides, sweeping, proving, checkpointing):
            monkeypatch.setattr(module, "open_reader", self._open)
        for module in (sides, inputs, checkpointing):
            monkeypatch.setattr(module, "read_to_end", self._read)
        for module in (sweeping, proving, inputs, checkpointing):
            monkeypatch.setattr(module, "bounds", self._bounds)
        for module in (migrate, fencing):
            monkeypatch.setattr(module, "Writer", lambda _kafka, transactional_id: FakeWriter(self, transactional_id))

        monkeypatch.setattr(checkpointing, "_Sink", lambda _kafka, topic, shard: FakeSink(self, topic, shard))

    def write(self, records: Sequence[Out]) -> None:
        """All or nothing, as `Writer.write`."""
        if len(self.transactions) == self.crash_at:
            raise Crash
        self.transactions.append(list(records))
        for record in records:
            self.partitions[record.topic, record.partition].append(record)

    @contextmanager
    def _open(self, _kafka: KafkaSettings, _name: str) -> Iterator[None]:
        yield None

    def _read(self, _consumer: None, topic: str, partition: int, start: int = 0) -> Iterator[FakeMessage]:
        first = max(start, self.first.get((topic, partition), 0))
        found = list(enumerate(self.partitions[topic, partition]))[first:]
        for offset, record in found:
            begins = self.unreadable.get((topic, partition, offset))
            if begins is not None:
                raise BatchUnreadable(offset=begins)
            yield FakeMessage(record, self.made_up.get((topic, partition, offset), offset))
        self.on_read(topic, partition, len(found))

    def _bounds(self, _consumer: None, topic: str, partition: int) -> tuple[int, int]:
        return self.first.get((topic, partition), 0), len(self.partitions[topic, partition])


class FakeSink:
    """Writes record by record."""

    def __init__(self, kafka: FakeKafka, topic: str, shard: int) -> None:
        self._place = topic, shard
        self._records = kafka.partitions[self._place]

    def put(self, value: bytes) -> int:
        self._records.append(Out(*self._place, None, value))
        return len(self._records) - 1


class FakeWriter:
    """Writes as long as nobody has fenced it."""

    def __init__(self, kafka: FakeKafka, transactional_id: str) -> None:
        self._kafka = kafka
        self._id = transactional_id

    def fence(self) -> None:
        self._kafka.owners[self._id] = self

    def write(self, records: Sequence[Out]) -> None:
        if self._kafka.owners.get(self._id) is not self:
            raise OwnershipLost("fenced")
        self._kafka.write(records)
