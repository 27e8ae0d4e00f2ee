"""What an input that stood unread in the old topics becomes in the new ones: itself, with its place of origin. Pure.

No record holds a migration up. Headers mean nothing to a shard, and are left out if they are large, or if a name is no
text, with which nobody can write. Of a key or a value that is larger than what a shard reads, the copy keeps so much
that it is refused all the same, and for the same reason. For Kafka bounds what is written by its size as it is sent,
and that was compressed, perhaps: the copy, which is not and has one header more, could be more than the topic takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streams.errors import BadRecord
from streams.headers import headers_of
from streams.transactions import Out
from streams.wire import MAX_VALUE_BYTES, decode_completion, decode_request, partition_for

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streams.admin.migration.sides import Side

# A record header; its value is "topic:partition:offset" of the original, as UTF-8.
MOVED_FROM: Final = "fairstream-moved-from"

# With a value of `MAX_VALUE_BYTES` and our own header these fit into a message of Kafka's default size (1,048,588).
MAX_KEY_BYTES: Final = 4_096
MAX_HEADER_BYTES: Final = 32_768
_HEADER_COST: Final = 8  # of a header beside its name and value, at most

_NO_TEXT: Final = b"\xff"


class Origin(NamedTuple):
    """Where an original stands, as its copy's header has it."""

    topic: str
    partition: int
    offset: int


def copy_of(message: Message | None, origin: Origin, source: str, new: Side) -> Out:
    """Return the record to write for an input: its key, value, time and headers, and last our own header.

    Of one that cannot be read at all (None) there is nothing but its place: without a value it is refused.
    """
    mark = (MOVED_FROM, ":".join(map(str, origin)).encode())
    if message is None:
        return Out(new.topic(source), origin.partition % new.shards, None, None, headers=(mark,))
    key, value, headers = message.key(), message.value(), headers_of(message) or ()
    if sum(len(name.encode()) + len(own or b"") + _HEADER_COST for name, own in headers) > MAX_HEADER_BYTES:
        headers = ()
    return Out(
        new.topic(source),
        _home_of(key, value, source, origin.partition, new.shards),
        None if key is None else _bounded(key),
        None if value is None else value[: MAX_VALUE_BYTES + 1],  # still more than a shard reads
        max(message.timestamp()[1], 0),
        (*headers, mark),
    )


def origin_of(message: Message) -> Origin | None:
    """Return where a copy's original stands; None for a record that is no copy."""
    for name, value in reversed(headers_of(message) or ()):
        if name == MOVED_FROM:  # the last one is this copy's; what is before, an earlier migration's
            place = (value or b"").decode(errors="replace").rsplit(":", 2)
            if len(place) == len(Origin._fields) and all(number.isdecimal() for number in place[1:]):
                return Origin(place[0], int(place[1]), int(place[2]))
            return None  # made up by somebody
    return None


def _home_of(key: bytes | None, value: bytes | None, source: str, shard: int, shards: int) -> int:
    """Return the partition of a record's tenant; of one that has none, since it cannot be read, any: it is refused."""
    try:
        if source == "requests":
            tenant = decode_request(key, value, 0, 0).tenant
        else:
            tenant = decode_completion(key, value, 0).tenant
    except BadRecord:
        return shard % shards
    return partition_for(tenant, shards)


def _bounded(key: bytes) -> bytes:
    """Return a key cut to what is copied; text is text still, and what is none is none."""
    if len(key) <= MAX_KEY_BYTES:
        return key
    try:
        key.decode()
    except UnicodeDecodeError:
        return _NO_TEXT + key[: MAX_KEY_BYTES - 1]
    return key[:MAX_KEY_BYTES].decode(errors="ignore").encode()
