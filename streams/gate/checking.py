"""What becomes of one record of an intake topic: it is passed on, or refused. Pure.

Whose topic it stands on is the one thing that its writer cannot make up, so all else is held against that. What the
shards would refuse unread is refused here with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from streams.core import reasons
from streams.errors import BadRecord
from streams.wire import (
    Position,
    TopicNames,
    decode_request,
    encode_unreadable,
    partition_for,
    tenant_of,
)
from streams.wire.keys import record_time

# A record header that tells where a request came from: "topic:partition:offset". For people: never parsed.
ADMITTED: Final = "fairstream-admitted-from"

# Headers that begin so are ours, and mean something to shards. From a tenant they are worth nothing: left out.
_OURS: Final = "fairstream-"

# A value has at most 1,000,000 bytes. With these, the key and our own header it still fits into a message of Kafka's
# default size (1,048,588), so that what an intake topic takes, the requests topic takes.
MAX_HEADER_BYTES: Final = 32_768
_HEADER_COST: Final = 8  # of a header beside its name and value, at most

_NO_STEP: Final = 0  # of a shard: they begin with 1

Headers = Sequence[tuple[str, bytes | None]]


class Arrived(NamedTuple):
    """A record of an intake topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None  # None: their names are no text


class Verdict(NamedTuple):
    """The record to write in its place."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int
    headers: list[tuple[str, str | bytes | None]]  # as the client's types have it
    refused: bool


class Checker:
    """Judges records of one deployment. `shards` (> 0) is its number of shards."""

    def __init__(self, prefix: str, names: TopicNames, shards: int) -> None:
        self._prefix: Final = prefix
        self._names: Final = names
        self._shards: Final = shards

    def judge(self, record: Arrived, now_ms: int) -> Verdict:
        """Return what takes the record's place. Never raises for what a record holds.

        Passed on: value and headers as they are (without those that are ours), the time (but none in the future), the
        tenant as key, in the tenant's partition. Refused: with the reason, its place and its bytes, under the name of
        the tenant whose topic it stands on, never of one that it names.
        """
        tenant = tenant_of(self._prefix, record.topic)
        try:
            headers = _readable(record.headers)
            given = decode_request(record.key, record.value, record.offset, record.timestamp_ms)
        except BadRecord as error:
            return self.refuse(record, error, now_ms)
        if given.tenant != tenant:
            other = BadRecord(f"not whose topic this is: {record.topic}", field="tenant", value=given.tenant)
            return self.refuse(record, other, now_ms, reasons.NOT_YOUR_TENANT)
        assert record.value is not None, "it could be read"
        time_ms = record_time(record.timestamp_ms)
        return Verdict(
            self._names.requests,
            partition_for(tenant, self._shards),
            tenant.encode(),
            record.value,
            min(time_ms, now_ms) if time_ms else now_ms,
            [*headers, (ADMITTED, f"{record.topic}:{record.partition}:{record.offset}".encode())],
            refused=False,
        )

    def refuse(self, record: Arrived, error: BadRecord, now_ms: int, reason: str = reasons.INVALID) -> Verdict:
        """Return the rejection of a record."""
        # A topic that is nobody's (the administrator's slip) is its own name.
        whose = tenant_of(self._prefix, record.topic) or record.topic
        shard = partition_for(whose, self._shards)
        value = encode_unreadable(
            error,
            record.key,
            record.value,
            Position(record.topic, record.partition, record.offset),
            shard=shard,
            step=_NO_STEP,
            at_ms=now_ms,
            reason=reason,
            tenant=whose,
        )
        return Verdict(self._names.rejected, shard, whose.encode(), value, now_ms, [], refused=True)


def _readable(headers: Headers | None) -> Headers:
    """Return the headers that are the tenant's to set. Raises `BadRecord` for what cannot be passed on."""
    if headers is None:
        raise BadRecord("a name of a record header is not UTF-8", field="headers")
    size = sum(len(name.encode()) + len(value or b"") + _HEADER_COST for name, value in headers)
    if size > MAX_HEADER_BYTES:
        raise BadRecord(f"{size} bytes of record headers, at most {MAX_HEADER_BYTES} are passed on", field="headers")
    return [(name, value) for name, value in headers if not name.lower().startswith(_OURS)]
