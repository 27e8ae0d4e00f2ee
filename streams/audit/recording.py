"""What an auditor reads, whatever it lies in: the committed records of a deployment's topics.

Topics are named without the deployment's prefix, as in `streams.wire.topics`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Rec(NamedTuple):
    """One committed record, with the fields of a consumed one."""

    offset: int
    timestamp: int  # ms since the epoch
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    readable: bool = True  # False: the headers are not UTF-8; no client can tell them, and they are left out


class Recording(Protocol):
    """The topics of one deployment as they stand, or as they stood when they were exported."""

    @property
    def prefix(self) -> str:
        """What the names of the topics begin with."""

    @property
    def shards(self) -> int:
        """How many there are: the partitions of the requests."""

    def partitions(self, topic: str) -> int:
        """Return how many there are. 0: the topic is not there."""

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        """Yield the records with start <= offset < stop, in order; None: to the end.

        What lies before the first one that is still there is not waited for: ask `bounds`.
        """

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset that is still there, and the one after the last. Between them there are gaps."""


@dataclass
class MemoryRecording:
    """A recording in lists: (topic, partition) -> its records in order of offset."""

    prefix: str = "runs."
    shards: int = 1
    topics: dict[tuple[str, int], list[Rec]] = field(default_factory=dict)

    def partitions(self, topic: str) -> int:
        return 1 + max((number for name, number in self.topics if name == topic), default=-1)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        records = self.topics.get((topic, partition), [])
        for record in records[bisect_left(records, start, key=_offset) :]:
            if stop is not None and record.offset >= stop:
                return
            yield record

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        records = self.topics.get((topic, partition), [])
        return (records[0].offset, records[-1].offset + 1) if records else (0, 0)

    def replaced(self, changes: Mapping[tuple[str, int], Sequence[Rec]]) -> MemoryRecording:
        """Return another one, in which some partitions hold something else."""
        return MemoryRecording(
            self.prefix, self.shards, self.topics | {place: [*new] for place, new in changes.items()}
        )


def _offset(record: Rec) -> int:
    return record.offset
