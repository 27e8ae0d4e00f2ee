"""Requests: a run to be done, or one to be taken back (`schemas/run_request.avsc`)."""

from __future__ import annotations

from typing import Final

import orjson

from streams.core.inputs import Cancel, Submit
from streams.wire import body
from streams.wire.keys import check_key, record_time
from streams.wire.reading import Reader
from streams.wire.writing import to_json

_READER: Final[Reader] = Reader("run_request")
_SUBMIT: Final = "submit"
_CANCEL: Final = "cancel"


def decode_request(key: bytes | None, value: bytes | None, offset: int, timestamp_ms: int) -> Submit | Cancel:
    """Return the input that a record of the requests topic stands for.

    `offset` becomes the input's position. `timestamp_ms` is the record's; one that cannot be a time becomes 0,
    "unknown". The tenant is the value's, whatever the key says. Raises `BadRecord`, naming the field.
    """
    check_key(key)
    message = _READER.read(value)
    if message.action == _CANCEL:
        return Cancel(offset, message.tenant, message.run_id)
    if message.workflow is None:
        _READER.require(message, _SUBMIT)
    return Submit(
        offset,
        message.tenant,
        message.run_id,
        message.workflow,
        message.class_,
        message.estimate,
        message.max_tokens,
        message.not_before_ms,
        message.deadline_ms,
        message.max_attempts,
        message.lease_ms,
        record_time(timestamp_ms),
        body.pack(bytes(message.payload), message.headers, message.max_tokens),
    )


def encode_request(
    *,
    tenant: str,
    run_id: str,
    workflow: str,
    class_: str | None = None,
    estimate: int | None = None,
    max_tokens: int | None = None,
    not_before_ms: int | None = None,
    deadline_ms: int | None = None,
    max_attempts: int | None = None,
    lease_ms: int | None = None,
    payload: object = None,
    headers: dict[str, str] | None = None,
) -> bytes:
    """Return the value that asks for a run. Its key is `tenant` in UTF-8.

    `payload` is any value orjson can write (in which NaN and infinity become null), or an `orjson.Fragment` of
    JSON text; None: no payload. Raises `BadRecord` for whatever the shard would refuse without looking at its state.
    """
    if isinstance(payload, orjson.Fragment):
        body.check(orjson.dumps(payload))  # text that ends too early would go on as other fields of the request
    message = {
        "tenant": tenant,
        "run_id": run_id,
        "workflow": workflow,
        "class": class_,
        "estimate": estimate,
        "max_tokens": max_tokens,
        "not_before_ms": not_before_ms,
        "deadline_ms": deadline_ms,
        "max_attempts": max_attempts,
        "lease_ms": lease_ms,
        "payload": payload,
        "headers": headers or None,
    }
    return _checked(to_json(message))


def encode_cancel(*, tenant: str, run_id: str) -> bytes:
    """Return the value that takes a run back. Its key is `tenant` in UTF-8. Raises `BadRecord`, naming the field."""
    return _checked(to_json({"action": _CANCEL, "tenant": tenant, "run_id": run_id}))


def _checked(value: bytes) -> bytes:
    decode_request(None, value, 0, 0)
    return value
