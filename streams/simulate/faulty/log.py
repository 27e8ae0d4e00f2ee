"""Topics in memory, with what Kafka promises of transactions, and nothing beyond.

Of a transaction readers see all once it is committed, and nothing before; behind a record whose transaction is open
they see nothing either (the last stable offset). The end of a transaction takes an offset in every partition that it
has touched, and what was aborted leaves its offsets unused. One transactional id has one producer: the next one that
is made under it fences the last one and ends what that has left open.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import attrgetter
from typing import Final, NamedTuple

from streams.errors import OwnershipLost

Headers = tuple[tuple[str, bytes], ...]
Place = tuple[str, int]  # topic without prefix, partition

_OFFSET: Final = attrgetter("offset")


class Record(NamedTuple):
    """A record as a reader gets it: what `streams.intake` wants of one."""

    offset: int
    timestamp: int  # ms
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class _Fate(Enum):
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(eq=False)
class _Transaction:
    fate: _Fate = _Fate.OPEN
    touched: dict[Place, None] = field(default_factory=dict)  # in order


class _Written(NamedTuple):
    offset: int
    record: Record
    transaction: _Transaction | None  # None: written without one


class Log:
    """All partitions of a deployment."""

    def __init__(self) -> None:
        self.now_ms = 0  # records are stamped with it
        self._partitions: defaultdict[Place, list[_Written]] = defaultdict(list)
        self._next: defaultdict[Place, int] = defaultdict(int)
        self._producers: dict[str, Producer] = {}

    def read(self, place: Place, start: int, most: int | None = None) -> tuple[list[Record], int]:
        """Return what a `read_committed` reader gets from `start` on, `most` at most, and where it goes on."""
        written = self._partitions[place]
        records: list[Record] = []
        for each in written[bisect_left(written, start, key=_OFFSET) :]:
            fate = _Fate.COMMITTED if each.transaction is None else each.transaction.fate
            if fate is _Fate.OPEN or (most is not None and len(records) == most):
                return records, each.offset
            if fate is _Fate.COMMITTED:
                records.append(each.record)
        return records, max(start, self._next[place])

    def compact(self, place: Place) -> None:
        """Leave of each key only the last record that a reader sees, and of those without a value nothing."""
        seen, _ = self.read(place, 0)
        end = len(seen) and seen[-1].offset + 1
        last = {each.key: each for each in seen}
        kept = [
            each
            for each in self._partitions[place]
            if each.offset >= end or (last.get(each.record.key) is each.record and each.record.value is not None)
        ]
        self._partitions[place] = kept

    def fence(self, transactional_id: str) -> Producer:
        """Return the only producer of this id from now on."""
        last = self._producers.get(transactional_id)
        if last is not None:
            last.fenced = True
            if last.transaction is not None:
                self.finish(last.transaction, _Fate.ABORTED)
        producer = self._producers[transactional_id] = Producer(self)
        return producer

    def finish(self, transaction: _Transaction, fate: _Fate) -> None:
        """End a transaction: its markers take an offset each."""
        transaction.fate = fate
        for place in transaction.touched:
            self._next[place] += 1

    def append(
        self,
        place: Place,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        timestamp: int | None = None,
        transaction: _Transaction | None = None,
    ) -> None:
        """Write a record, of now unless it has a time of its own, and of no transaction unless one is named."""
        offset = self._next[place]
        self._next[place] += 1
        record = Record(offset, self.now_ms if timestamp is None else timestamp, key, value, headers)
        self._partitions[place].append(_Written(offset, record, transaction))


class Producer:
    """A transactional producer. Every method raises `OwnershipLost` once it has been fenced."""

    def __init__(self, log: Log) -> None:
        self._log: Final = log
        self.fenced = False
        self.transaction: _Transaction | None = None

    def begin(self) -> None:
        """Open a transaction."""
        self._check()
        self.transaction = _Transaction()

    def send(
        self,
        place: Place,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        """Write a record of the open transaction."""
        self._check()
        assert self.transaction is not None, "it has begun"
        self.transaction.touched[place] = None
        self._log.append(place, key, value, headers, timestamp=timestamp, transaction=self.transaction)

    def commit(self) -> None:
        """Let all of it be seen."""
        self._end(_Fate.COMMITTED)

    def abort(self) -> None:
        """Let nothing of it be seen."""
        self._end(_Fate.ABORTED)

    def time_out(self) -> None:
        """The broker has waited long enough: it aborts the transaction, and fences whoever had it."""
        self.abort()
        self.fenced = True

    def _end(self, fate: _Fate) -> None:
        self._check()
        assert self.transaction is not None, "it has begun"
        self._log.finish(self.transaction, fate)
        self.transaction = None

    def _check(self) -> None:
        if self.fenced:
            raise OwnershipLost("another producer has the transactional id")
