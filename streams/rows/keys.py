"""Row keys as bytes: a JSON array of the shard and the parts of the key, so that no name can break it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from streams.core.records import Key
from streams.errors import StateUnreadable

_TEXTS: Final = {str}
# Not by orjson: its bytes keep 4 KB of a buffer as long as they live. A step makes thousands, and some are held.
_encode: Final = msgspec.json.Encoder().encode


def encode_key(shard: int, key: Key) -> bytes:
    """Return the Kafka key of a row. Equal keys give equal bytes: compaction goes by them."""
    return _encode((shard, *key))


def decode_key(data: bytes) -> tuple[int, Key]:
    """Return shard and key. Raises `StateUnreadable` for anything but what `encode_key` writes.

    Other spellings of the same key are refused too: compaction would keep them as two rows.
    """
    try:
        parts: Any = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise StateUnreadable(f"a row's key is not JSON: {error}: {data[:80]!r}") from None
    if type(parts) is list and len(parts) > 1:
        shard, *names = parts
        if type(shard) is int and {*map(type, names)} == _TEXTS and _encode(parts) == data:
            return shard, tuple(names)
    raise StateUnreadable(f"a row's key is not [shard,kind,...]: {data[:80]!r}")
