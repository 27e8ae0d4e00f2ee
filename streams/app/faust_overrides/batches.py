"""The batches of a fetch, in place of aiokafka's: what cannot be read in one is marked, and the rest is there.

When aiokafka fails to read a record it raises from the fetch, without a place, drops what the same fetch brought for
other partitions though their positions have moved, and fails at the next one again. Nothing here raises. Per batch:

- A record whose headers cannot be read keeps its offset, key and value, and is marked.
- What cannot be read at all, or has offsets that are not the batch's, is one marked record at the batch's last offset.
- What is not what Kafka took (its checksum is wrong) ends the fetch. First in one it is a mark: it was accepted, so it
  is not to be passed over, and may come whole another time.

Memory is bounded, for a batch may unpack to a thousand times its size: one batch to `MAX_BATCH_BYTES`, and none
follows in a fetch whose batches have come to `MAX_FETCH_BYTES`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch
from aiokafka.record.memory_records import _MemoryRecordsPy

from streams.app.faust_overrides.pins import replaces, rests_on
from streams.app.faust_overrides.salvage import HEADER, UNREADABLE, Cannot, salvage
from streams.app.faust_overrides.unpacking import CannotUnpack, unpack
from streams.intake.unread import BATCH, DAMAGED, mark

MAX_BATCH_BYTES: Final = 64 << 20
MAX_FETCH_BYTES: Final = 16 << 20

_PREFIX_BYTES: Final = 12  # the offset and the length, which counts what follows it
_LENGTH_AT: Final = 8
_MAGIC: Final = 2  # no Kafka that we can use gives older ones
_CODEC: Final = 0x07
_NOWHERE: Final = (1 << 63) - 2  # the offset of what has none: no position is above it

rests_on(
    fetcher.PartitionRecords,
    "_unpack_records",
    "b803e6d46480",
    "What it asks a batch for, and in which order, is all that `Batch` has.",
)
rests_on(
    fetcher.Fetcher,
    "_proc_fetch_request",
    "59bf948fff47",
    "Each partition's bytes become a `MemoryRecords`, looked up by that name.",
)
rests_on(
    fetcher.FetchResult,
    "getall",
    "3e717e30de50",
    "What it has read is lost when a record raises, so none may.",
)


def install() -> None:
    """Make aiokafka's consumers use `Batches`. For the whole process: there is no other seam."""
    fetcher.MemoryRecords = Batches


class Batches:
    """One partition's batches of a fetch, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data: Final = memoryview(data)
        self._at = 0
        self._room = MAX_FETCH_BYTES
        self._next = self._whole()  # None: there is no more
        self._damage = None if self._next is None else _damage(self._next)

    def size_in_bytes(self) -> int:
        """Return how much there is, a last batch that is cut included."""
        return len(self._data)

    def has_next(self) -> bool:
        """Whether there is another whole batch, and room for it."""
        return self._next is not None

    @replaces(_MemoryRecordsPy, "next_batch", "f1779ecb6d0d")
    def next_batch(self) -> Batch | Damaged:
        """Stock's batches cannot be told to go on after what they cannot read, nor how large they may become."""
        raw, self._next = self._next, None
        assert raw is not None, "asked for after `has_next`"
        if self._damage is not None:
            return Damaged(self._damage)
        batch = Batch(raw)
        self._at += len(raw)
        self._room -= batch.size
        if self._room > 0:
            following = self._whole()
            # Damage is told when nothing stands before it, so that what does is applied first.
            self._next = None if following is None or _damage(following) else following
        return batch

    def _whole(self) -> memoryview | None:
        """Return the bytes of the next batch; None if they are not all there."""
        left = self._data[self._at :]
        if len(left) < _PREFIX_BYTES:
            return None
        (length,) = struct.unpack_from(">i", left, _LENGTH_AT)
        size = _PREFIX_BYTES + max(int(length), 0)
        return left[:size] if size <= len(left) else None


def _damage(raw: memoryview) -> str | None:
    """Return how one sees that these are not the bytes that Kafka took; None if they are."""
    if len(raw) < HEADER.size:
        return f"a batch of {len(raw)} bytes"
    magic = HEADER.unpack_from(raw)[3]
    if magic != _MAGIC:
        return f"a batch of format {magic}"
    return None if DefaultRecordBatch(raw).validate_crc() else "a batch whose checksum is wrong"


class Batch:
    """A batch as Kafka took it. The attributes are those that aiokafka asks for."""

    def __init__(self, raw: memoryview) -> None:
        stock = DefaultRecordBatch(raw)
        self.base_offset, self.next_offset = stock.base_offset, stock.next_offset
        self.producer_id: int | None = stock.producer_id
        self.is_control_batch, self.is_transactional = stock.is_control_batch, stock.is_transactional
        self.size: int  # in memory
        self._stock: Any = None  # None: not even its records are there
        self._why = ""
        try:
            plain = raw if stock.compression_type == 0 else _unpacked(raw)
        except CannotUnpack as error:
            self.size, self._why = len(raw), str(error)
        else:
            self.size, self._plain, self._stock = len(plain), plain, DefaultRecordBatch(plain)

    def validate_crc(self) -> bool:
        """It was looked at before."""
        return True

    def __next__(self) -> Any:
        """Return the record of a control batch, which is Kafka's own."""
        return next(self._stock)

    def __iter__(self) -> Iterator[Any]:
        last = self.base_offset - 1
        try:
            for record in self._in_order():
                last = record.offset
                yield record
        except Cannot as error:
            why = f"offsets {last + 1} to {self.next_offset - 1} cannot be read: {error}"
            yield _stand_in(self.next_offset - 1, BATCH, why)

    def _in_order(self) -> Iterator[Any]:
        """Give offsets as Kafka gave them: one that a producer made up would take a shard's position along with it."""
        least, end = self.base_offset, self.next_offset
        for record in self._records():
            if not least <= record.offset < end:
                raise Cannot(f"a record says that its offset is {record.offset}")
            least = record.offset + 1
            yield record

    def _records(self) -> Iterator[Any]:
        if self._stock is None:
            raise Cannot(self._why)
        read = 0
        try:
            for record in self._stock:
                read += 1
                yield record
        except UNREADABLE:
            yield from salvage(self._plain, read)


class Damaged:
    """Ends a fetch: one marked record, which is nowhere."""

    base_offset = _NOWHERE
    next_offset = _NOWHERE
    producer_id = None
    is_control_batch = is_transactional = False

    def __init__(self, why: str) -> None:
        self._why: Final = why

    def validate_crc(self) -> bool:
        """An error would lose what the same fetch brought for other partitions."""
        return True

    def __iter__(self) -> Iterator[Any]:
        yield _stand_in(_NOWHERE, DAMAGED, self._why)


def _unpacked(raw: memoryview) -> bytes:
    """Return the batch as if it had not been compressed. Raises `CannotUnpack`."""
    header = list(HEADER.unpack_from(raw))
    attributes = header[5]
    header[5] = attributes & ~_CODEC
    return HEADER.pack(*header) + unpack(attributes & _CODEC, bytes(raw[HEADER.size :]), MAX_BATCH_BYTES)


def _stand_in(offset: int, kind: str, why: str) -> Any:
    return DefaultRecord(offset, -1, 0, None, None, mark(kind, why))
