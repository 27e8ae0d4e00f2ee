"""Unpacking: what each codec packs, in every framing that clients use, and never more than is allowed."""

from __future__ import annotations

import random
import struct

import cramjam
import pytest

from streams.app.faust_overrides import unpacking
from streams.app.faust_overrides.unpacking import CannotUnpack, unpack

MOST = 1_000_000
PLAIN = {
    "nothing": b"",
    "little": b"records",
    "a lot of the same": bytes(MOST),
    "all different": random.Random(1).randbytes(300_000),
}


def in_blocks(plain: bytes, size: int = 32_768) -> bytes:
    """Pack as Java's clients do."""
    blocks = [bytes(cramjam.snappy.compress_raw(plain[at : at + size])) for at in range(0, len(plain), size)]
    return (
        b"\x82SNAPPY\x00" + struct.pack(">II", 1, 1) + b"".join(struct.pack(">I", len(each)) + each for each in blocks)
    )


PACK = {
    "gzip": (1, lambda plain: bytes(cramjam.gzip.compress(plain))),
    "snappy": (2, lambda plain: bytes(cramjam.snappy.compress_raw(plain))),
    "snappy in blocks": (2, in_blocks),
    "lz4": (3, lambda plain: bytes(cramjam.lz4.compress(plain))),
    "zstd": (4, lambda plain: bytes(cramjam.zstd.compress(plain))),
}


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("name", PACK)
def test_what_was_packed_comes_out(name: str, plain: str) -> None:
    codec, pack = PACK[name]
    assert unpack(codec, pack(PLAIN[plain]), MOST) == PLAIN[plain]


@pytest.mark.parametrize("name", PACK)
def test_what_is_larger_than_allowed_does_not(name: str) -> None:
    codec, pack = PACK[name]
    with pytest.raises(CannotUnpack, match=f"larger than {MOST} bytes"):
        unpack(codec, pack(bytes(MOST + 1)), MOST)


@pytest.mark.parametrize("name", PACK)
def test_what_is_cut_cannot_be_unpacked(name: str) -> None:
    codec, pack = PACK[name]
    packed = pack(PLAIN["all different"])
    with pytest.raises(CannotUnpack, match="cannot be unpacked"):
        unpack(codec, packed[: len(packed) // 2], MOST)


def test_what_is_not_packed_is_as_it_is() -> None:
    assert unpack(0, b"records", 1) == b"records"


def test_no_more_room_is_made_than_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cleared each time: all that is allowed would take longer than the step that follows."""
    made: list[int] = []

    def make(room: int) -> bytearray:
        made.append(room)
        return bytearray(room)

    monkeypatch.setattr(unpacking, "bytearray", make, raising=False)
    codec, pack = PACK["zstd"]
    unpack(codec, pack(b"x" * 1_000), 64 << 20)
    assert sum(made) < 1 << 17
    made.clear()
    unpack(codec, pack(bytes(MOST)), 64 << 20)
    assert sum(made) < 8 * MOST
