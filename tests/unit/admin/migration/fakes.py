"""A Kafka of lists, for what a migration reads and writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from streams.admin.migration import proving, sweeping
from streams.admin.migration.sides import Side
from streams.admin.migration.writing import Out
from streams.kafka import KafkaSettings

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
    """Partitions, and a transactional writer that may crash before one of its transactions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions: defaultdict[tuple[str, int], list[Out]] = defaultdict(list)
        self.first: dict[tuple[str, int], int] = {}  # offset of the first record that retention has left
        self.transactions: list[list[Out]] = []
        self.crash_at: int | None = None  # the number of a transaction
        for module in (sweeping, proving):
            monkeypatch.setattr(module, "open_reader", self._open)
            monkeypatch.setattr(module, "read_to_end", self._read)
            monkeypatch.setattr(module, "bounds", self._bounds)

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
        for offset, record in enumerate(list(self.partitions[topic, partition])):
            if offset >= max(start, self.first.get((topic, partition), 0)):
                yield FakeMessage(record, offset)

    def _bounds(self, _consumer: None, topic: str, partition: int) -> tuple[int, int]:
        return self.first.get((topic, partition), 0), len(self.partitions[topic, partition])
