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

# The room that a batch is given first; memory is cleared before it is used, 20 ms for 64 MiB.
_LEAST: Final = 1 << 16
_USUAL: Final = 8  # times smaller than it was


class CannotUnpack(ValueError):
    """The bytes are not what their codec packs, or are too many unpacked; says which."""


def unpack(codec: int, packed: bytes, most: int) -> bytes:
    """Return what `packed` holds: at most `most` bytes. Raises `CannotUnpack`."""
    if codec == _NONE:
        return packed
    if codec != _SNAPPY and codec not in _UNPACK:
        raise CannotUnpack(f"compressed by a codec that does not exist, number {codec}")
    room = min(most, _LEAST + _USUAL * len(packed))
    while True:
        into = bytearray(room)
        try:
            size = _unsnap(packed, into) if codec == _SNAPPY else _UNPACK[codec](packed, into)
        except (cramjam.DecompressionError, struct.error) as error:
            # It does not say which of the two it is.
            if room == most:
                raise CannotUnpack(f"cannot be unpacked, or is larger than {most} bytes unpacked: {error}") from error
            room = min(most, room * _USUAL)
        else:
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
            raise cramjam.DecompressionError("the blocks are larger together")
        piece = bytes(cramjam.snappy.decompress_raw(block))
        into[size : size + len(piece)] = piece
        at, size = at + 4 + length, size + len(piece)
    return size
