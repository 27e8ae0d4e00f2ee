"""A checkpoint as records: the rows of a shard at a step, between a head and the foot that makes them count. Pure.

    ["head",1,"9f2c41d07ab3e856",0,1764000000000]
    ["rows",1,"9f2c41d07ab3e856",[9,41,27,-1]]
    [0,"shard"][1,0,2,3,1041,1764000000000,0,...][0,"run","acme","r7"]
    ["foot",1,"9f2c41d07ab3e856",0,1041,1764000000000,3,...]

Rows stand as the state topic had them, and in its order: one that was written again, or deleted (its size is -1), may
stand there several times, and the last one counts. So whoever copies a shard of any size holds one chunk of it.
The array is written on one line, as in a row, and what follows are keys and values, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec
import orjson

from streams.errors import StateUnreadable

FORM: Final = 1  # of what is written here; a field that is added at the end needs no other
DELETED: Final = -1  # in place of a value's size

_END: Final = b"\n"
_DIGEST_BYTES: Final = 16

Pair = tuple[bytes, bytes | None]  # a row's key and value as they are in the state topic; None: deleted


class Head(msgspec.Struct, frozen=True, array_like=True, tag="head"):
    """A checkpoint begins. Without its foot it is none."""

    form: int
    id: str  # tells it from others: two processes may write at once
    shard: int
    begun_ms: int


class Rows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """Some rows. What follows the line is theirs."""

    form: int
    id: str
    sizes: list[int]  # of a key, of its value, of the next key, ...


class Foot(msgspec.Struct, frozen=True, array_like=True, tag="foot"):
    """A checkpoint is complete."""

    form: int
    id: str
    shard: int
    step: int  # the last one that the rows know of; 0: none yet
    now_ms: int  # its time
    epoch: int  # its owner
    head: int  # offset of the head
    chunks: int  # records between head and foot
    rows: int  # in them
    digest: str  # of them, see `Digest`
    positions: str | None  # the row that is the runtime's, as it is; None: there is none yet, as after a migration
    state_end: int  # the next offset of the state topic when it began to be read: what is new is above
    journal_end: int  # of the journal: what lies before is of that step or earlier, and its record is near


Part = Head | Rows | Foot

_DECODER: Final[msgspec.json.Decoder[Part]] = msgspec.json.Decoder(Part)


class Digest:
    """Of chunks, in their order."""

    def __init__(self) -> None:
        self._hash: Final = blake2b(digest_size=_DIGEST_BYTES)

    def add(self, chunk: bytes) -> None:
        self._hash.update(chunk)

    @property
    def value(self) -> str:
        """Of what was added so far: 32 hex digits."""
        return self._hash.hexdigest()


def encode_part(part: Head | Foot) -> bytes:
    """Return the value of a head's or foot's record. The key of all of them is the shard's number as text."""
    return msgspec.json.encode(part)


def encode_rows(checkpoint: str, pairs: Iterable[Pair]) -> bytes:
    """Return the value of the record that holds these rows."""
    sizes: list[int] = []
    parts: list[bytes] = []
    for key, value in pairs:
        parts.append(key)
        if value is None:
            sizes += (len(key), DELETED)
        else:
            sizes += (len(key), len(value))
            parts.append(value)
    return orjson.dumps(["rows", FORM, checkpoint, sizes]) + _END + b"".join(parts)


def decode_part(value: bytes | None) -> Part:
    """Return what a record of the topic is. Raises `StateUnreadable` if it is none of these three."""
    try:
        part = _DECODER.decode((value or b"").partition(_END)[0])
    except ValueError as error:  # msgspec.DecodeError is one
        raise StateUnreadable(f"it is no part of a checkpoint: {error}: {(value or b'')[:80]!r}") from error
    if part.form != FORM:
        raise StateUnreadable(
            f"the checkpoint {part.id} was written by a newer fairstream (version {part.form} of its form; {FORM} is "
            "known here); run that one, or a later one"
        )
    return part


def decode_rows(part: Rows, value: bytes) -> Iterator[Pair]:
    """Yield the rows of a chunk. Raises `StateUnreadable` if there is more of it or less than it says."""
    at = value.index(_END) + 1
    sizes = part.sizes
    taken = sum(size for size in sizes if size > 0)
    if len(sizes) % 2 or min(sizes, default=0) < DELETED or min(sizes[::2], default=0) < 0 or at + taken != len(value):
        raise StateUnreadable(f"the checkpoint {part.id} has a chunk whose sizes are not those of its rows")
    for key_size, value_size in zip(sizes[::2], sizes[1::2], strict=True):
        key = value[at : at + key_size]
        at += key_size
        if value_size == DELETED:
            yield key, None
        else:
            yield key, value[at : at + value_size]
            at += value_size
