"""Rejections: runs that will not be served, and records that cannot be read (`schemas/rejection.avsc`)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final, NamedTuple

import orjson

from streams.core import reasons
from streams.core.effects import Rejection
from streams.errors import BadRecord
from streams.wire import body
from streams.wire.reading import Reader
from streams.wire.topics import MAX_MESSAGE_BYTES

_READER: Final[Reader] = Reader("rejection")

# Of an unreadable value. Its position tells where the whole of it is; a rejection must fit its topic, always.
MAX_ORIGINAL_BYTES: Final = 65_536
_MAX_GOT: Final = 200


class Position(NamedTuple):
    """Where a record stands."""

    topic: str
    partition: int
    offset: int


# Of a run that was accepted before its deployment moved here: its request stands in the topics that it came from.
ELSEWHERE: Final = Position("", -1, -1)


class Refusal(NamedTuple):
    """A rejection as its reader gets it."""

    reason: str  # one of the names in `streams.core.reasons`
    detail: str
    position: Position  # or `ELSEWHERE`
    shard: int
    step: int
    at_ms: int
    tenant: str | None
    run_id: str | None
    field: str | None
    got: str | None  # the wrong value as JSON, shortened
    limit: int | None
    value: int | None
    retry_after_ms: int | None  # None: another try will not help
    payload_json: bytes  # of a run; empty: none
    headers: dict[str, str]
    original: bytes | None  # the unreadable value, cut after `MAX_ORIGINAL_BYTES`
    original_size: int | None
    original_key: bytes | None
    left_out: int = 0  # bytes of payload, headers and max_tokens that did not fit; `position` tells where they are


def encode_rejection(rejection: Rejection, position: Position, *, shard: int, step: int, at_ms: int) -> bytes:
    """Return the value that refuses a run. Its key is the tenant in UTF-8."""
    head: dict[str, Any] = {
        "reason": rejection.reason,
        "detail": rejection.detail,
        "tenant": rejection.tenant,
        "run_id": rejection.run_id,
        "limit": rejection.limit,
        "value": rejection.value,
        "retry_after_ms": rejection.retry_after_ms,
        # Below 0 is no offset: the run was moved here. Who took it for one would find nothing, or another record.
        "position": position._asdict() if position.offset >= 0 else None,
        "shard": shard,
        "step": step,
        "at_ms": at_ms,
    }
    if rejection.left_out:
        head["left_out"] = rejection.left_out
    return body.splice(orjson.dumps(head), rejection.body)


def encode_unreadable(
    error: BadRecord,
    key: bytes | None,
    value: bytes | None,
    position: Position,
    *,
    shard: int,
    step: int,
    at_ms: int,
    reason: str = reasons.INVALID,
    tenant: str | None = None,
    whole: bool = True,
) -> bytes:
    """Return the value that sets a record aside, with its bytes unless it is told not to be `whole`.

    A shard's has no `tenant`, and the record's own key, whatever it is. The gate knows who wrote: its has the tenant
    whose topic that is, also as key, and step 0.
    """
    message: dict[str, Any] = {
        "reason": reason,
        "detail": str(error),
        "tenant": tenant,
        "field": error.field,
        "got": None if error.value is None else _shown(error.value),
        "position": position._asdict(),
        "shard": shard,
        "step": step,
        "at_ms": at_ms,
        "original": None if value is None or not whole else b64encode(value[:MAX_ORIGINAL_BYTES]).decode(),
        "original_size": None if value is None else len(value),
        "original_key": None if key is None or not whole else b64encode(key[:MAX_ORIGINAL_BYTES]).decode(),
    }
    return orjson.dumps(message)


def decode_rejection(value: bytes | None) -> Refusal:
    """Return what a record of the rejected topic says. Raises `BadRecord`, naming the field."""
    message = _READER.read(value, MAX_MESSAGE_BYTES)
    place = message.position
    return Refusal(
        message.reason,
        message.detail,
        ELSEWHERE if place is None else Position(place.topic, place.partition, place.offset),
        message.shard,
        message.step,
        message.at_ms,
        message.tenant,
        message.run_id,
        message.field,
        message.got,
        message.limit,
        message.value,
        message.retry_after_ms,
        bytes(message.payload),
        message.headers,
        message.original,
        message.original_size,
        message.original_key,
        message.left_out,
    )


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, bytes) else orjson.dumps(value, default=repr).decode()
    return text if len(text) <= _MAX_GOT else text[: _MAX_GOT - 1] + "…"
