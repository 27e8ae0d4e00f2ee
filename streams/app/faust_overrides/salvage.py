"""Reads the records of a batch one by one, past headers that aiokafka cannot read.

A header's name may be any bytes: Kafka takes them, and aiokafka gives up the batch, over and over. Slower than its
reader, and only for such batches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch

from streams.intake.unread import HEADERS, mark

# Offset, length, leader's epoch, magic, checksum, attributes, distance of the last offset, first and last timestamp,
# producer's id and epoch, sequence, number of records.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_APPEND_TIME: Final = 0x08
_VARINT_BITS: Final = 64

# What aiokafka's reader raises; the last two for lengths that no memory has.
UNREADABLE: Final = (UnicodeDecodeError, CorruptRecordException, OverflowError, MemoryError)


class Cannot(ValueError):
    """A record has no form that could be read past."""


def salvage(batch: bytes | memoryview, skip: int) -> Iterator[Any]:
    """Yield the records of a batch that is not compressed, but for the first `skip`. Raises `Cannot`.

    Those whose headers cannot be read are marked.
    """
    header = HEADER.unpack_from(batch)
    alone, records = HEADER.pack(*header[:-1], 1), bytes(batch[HEADER.size :])
    at = 0
    for number in range(header[-1]):
        begin = at
        length, start = _varint(records, begin)
        at = start + length
        if length < 0 or at > len(records):
            raise Cannot(f"record {number} has a length of {length}")
        if number >= skip:
            # By itself, so that the next one can be read whatever becomes of it.
            try:
                (record,) = DefaultRecordBatch(alone + records[begin:at])
            except UNREADABLE as error:
                record = _marked(header, records[start:at], error)
            yield record


def _marked(header: tuple[int, ...], body: bytes, error: Exception) -> Any:
    base_offset, attributes, first_timestamp, last_timestamp = header[0], header[5], header[7], header[8]
    at = 1  # the record's own attributes, of which there are none so far
    delay, at = _varint(body, at)
    delta, at = _varint(body, at)
    key, at = _bytes(body, at)
    value, at = _bytes(body, at)
    appended = bool(attributes & _APPEND_TIME)
    timestamp = last_timestamp if appended else first_timestamp + delay
    return DefaultRecord(base_offset + delta, timestamp, int(appended), key, value, mark(HEADERS, str(error)))


def _bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(body, at)
    if length < 0:
        return None, at
    if at + length > len(body):
        raise Cannot(f"{length} bytes wanted where {len(body) - at} are left")
    return body[at : at + length], at + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of 64 bits at most. aiokafka's function for it reads on behind the end."""
    number = 0
    for shift in range(0, _VARINT_BITS, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return (number >> 1) ^ -(number & 1), at
    raise Cannot(f"no number ends at byte {at}")
