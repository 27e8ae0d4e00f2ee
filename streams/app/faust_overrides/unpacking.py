"""Unpacks the records of a batch, whatever its codec, into a bounded number of bytes.

aiokafka unpacks a batch whole, however large it comes out: three kilobytes of zstd become a hundred megabytes, and one
megabyte more than the machine has. A broker does not mind, for it unpacks piece by piece.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import cramjam

_NONE: Final = 0
# As they are numbered in a batch's attributes.
_UNPACK: Final[dict[int, Any]] = {
    1: cramjam.gzip.decompress_into,
    3: cramjam.lz4.decompress_into,
    4: cramjam.zstd.decompress_into,
}
_SNAPPY: Final = 2
_XERIAL: Final = b"\x82SNAPPY\x00"  # then two versions of four bytes, then blocks, each after its length
_XERIAL_HEADER_BYTES: Final = 16


class CannotUnpack(ValueError):
    """The bytes are not what their codec packs, or are too many unpacked; says which."""


def unpack(codec: int, packed: bytes, most: int) -> bytes:
    """Return what `packed` holds: at most `most` bytes. Raises `CannotUnpack`."""
    if codec == _NONE:
        return packed
    if codec != _SNAPPY and codec not in _UNPACK:
        raise CannotUnpack(f"compressed by a codec that does not exist, number {codec}")
    # Only what is written to it takes memory.
    into = bytearray(most)
    try:
        size = _unsnap(packed, into) if codec == _SNAPPY else _UNPACK[codec](packed, into)
    except (cramjam.DecompressionError, struct.error) as error:
        raise CannotUnpack(f"cannot be unpacked, or is larger than {most} bytes unpacked: {error}") from error
    return bytes(memoryview(into)[:size])


def _unsnap(packed: bytes, into: bytearray) -> int:
    """Java's clients frame snappy in blocks, others don't. Returns the number of bytes written to `into`."""
    if not packed.startswith(_XERIAL):
        return int(cramjam.snappy.decompress_raw_into(packed, into))
    at, size = _XERIAL_HEADER_BYTES, 0
    while at < len(packed):
        (length,) = struct.unpack_from(">I", packed, at)
        block = packed[at + 4 : at + 4 + length]
        if size + cramjam.snappy.decompress_raw_len(block) > len(into):
            raise CannotUnpack(f"larger than {len(into)} bytes unpacked")
        piece = bytes(cramjam.snappy.decompress_raw(block))
        into[size : size + len(piece)] = piece
        at, size = at + 4 + length, size + len(piece)
    return size
