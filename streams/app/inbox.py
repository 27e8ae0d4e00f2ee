"""What has arrived for a shard and waits for its next step: filled by the event loop, emptied by the shard's thread.

Bounded: `put` always takes the batch (it is in memory already), but tells when to stop fetching more. Every batch
belongs to a takeover, which sets the inputs back: what was fetched before it must never follow.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streams.intake import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.intake import InputRecord


# The names in what a step takes in go into its journal record, which has a bound of its own (`STEP_BYTES`). They are no
# longer than the value that they stand in, nor than two names of 255 characters, each of which takes six bytes at most.
MAX_NAMES_BYTES: Final = 3 << 20
_NAMES_BYTES: Final = 2 * 255 * 6
# A report may be named twice: it settles an attempt, and its run is rejected or another attempt of it revoked.
_TIMES_NAMED: Final = {Source.COMPLETIONS: 2, Source.REQUESTS: 1}


@dataclass(slots=True)
class Batch:
    """Records of one partition, in order of offset, as one fetch brought them."""

    source: Source
    records: Sequence[InputRecord]
    takeover: int
    event: Any = None  # acknowledged once the whole batch is in a committed step
    size: int = 0  # see `size_of`


def size_of(record: InputRecord) -> int:
    """Return the bytes that a record keeps in memory: whoever writes it may put a megabyte into its key or a header."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size


class Inbox:
    """A queue of batches, full when it holds `max_records` or `max_bytes`."""

    def __init__(self, max_records: int, max_bytes: int, on_room: Callable[[], None]) -> None:
        """`on_room` is called from the shard's thread when a full inbox has room again."""
        self._max_records: Final = max_records
        self._max_bytes: Final = max_bytes
        self._on_room: Final = on_room
        self._changed: Final = threading.Condition()
        self._batches: deque[Batch] = deque()
        self._records = 0  # == sum of the batches' lengths
        self._bytes = 0  # == sum of the batches' sizes
        self._takeover = 0
        self._woken = False

    @property
    def full(self) -> bool:
        """Whether no more should be fetched for now."""
        return self._records >= self._max_records or self._bytes >= self._max_bytes

    def put(self, batch: Batch) -> bool:
        """Add a batch; return whether it was taken. One of another takeover is not: it will be read again."""
        with self._changed:
            if batch.takeover != self._takeover:
                return False
            self._batches.append(batch)
            self._records += len(batch.records)
            self._bytes += batch.size
            self._changed.notify()
            return True

    def take(self, max_records: int, max_bytes: int) -> list[Batch]:
        """Remove and return the next batches: at most so many records, and none after so many bytes.

        Nor after so many bytes of names as a step may take in (`MAX_NAMES_BYTES`). A batch may be cut; its event then
        comes with the rest.
        """
        taken: list[Batch] = []
        max_names = MAX_NAMES_BYTES
        with self._changed:
            was_full = self.full
            while self._batches and max_records > 0 and max_bytes > 0 and max_names > 0:
                batch = self._batches.popleft()
                length, names = _fitting(batch, max_records, max_names)
                if length < len(batch.records):
                    batch, rest = _cut(batch, length)
                    self._batches.appendleft(rest)
                max_records -= length
                max_names -= names
                max_bytes -= batch.size
                self._records -= len(batch.records)
                self._bytes -= batch.size
                taken.append(batch)
            has_room = was_full and not self.full
        if has_room:
            self._on_room()
        return taken

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to do, or after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken or bool(self._batches), timeout_s)
            self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one, though nothing has arrived."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def reset(self, takeover: int) -> None:
        """Drop everything, and take only batches of this takeover from now on."""
        with self._changed:
            self._batches.clear()
            self._records = 0
            self._bytes = 0
            self._takeover = takeover
        self._on_room()


def _fitting(batch: Batch, max_records: int, max_names: int) -> tuple[int, int]:
    """Return how many of the first records of a batch a step may take, at least one, and the bytes of their names."""
    times = _TIMES_NAMED[batch.source]
    length = min(len(batch.records), max_records)
    names = times * batch.size
    if names <= max_names:
        return length, names
    names = 0
    for number, record in enumerate(batch.records[:length], start=1):
        names += times * min(len(record.value or b""), _NAMES_BYTES)
        if names >= max_names:
            return number, names
    return length, names


def _cut(batch: Batch, length: int) -> tuple[Batch, Batch]:
    """Split a batch after `length` records."""
    head, rest = batch.records[:length], batch.records[length:]
    size = sum(map(size_of, head))
    return (
        Batch(batch.source, head, batch.takeover, size=size),
        Batch(batch.source, rest, batch.takeover, batch.event, batch.size - size),
    )
