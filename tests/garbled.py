"""Batches of records as a hostile producer writes them, made with aiokafka's own builder."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.record.util import calc_crc32c

_CRC_AT: Final = 17
CRC_FROM: Final = 21  # where the attributes are, too
CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Garbled(str):
    """The name of a header that Kafka takes and its clients cannot read."""

    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        return b"\xff\xfe"


class Given(NamedTuple):
    """A record to be written."""

    value: bytes | None
    key: bytes | None = b"key"
    headers: Sequence[tuple[str, bytes | None]] = ()
    delta: int | None = None  # the distance of its offset, if it is not its number


def signed(batch: bytes | bytearray) -> bytes:
    """Return a changed batch with the checksum that its producer would give it."""
    copy = bytearray(batch)
    copy[_CRC_AT:CRC_FROM] = struct.pack(">I", calc_crc32c(bytes(copy[CRC_FROM:])))
    return bytes(copy)


def batch_of(*given: Given, codec: str = "none", base_offset: int = 0, at_ms: int = 1_000) -> bytes:
    """Return a batch as Kafka gives it, its checksum right."""
    builder = _DefaultRecordBatchBuilderPy(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for number, each in enumerate(given):
        delta = number if each.delta is None else each.delta
        builder.append(delta, at_ms + number, each.key, each.value, list(each.headers))
    builder._last_offset = len(given) - 1
    batch = builder.build()
    batch[:8] = base_offset.to_bytes(8, "big")
    return bytes(batch)
