"""Completions: what a worker reports on one attempt (`schemas/completion.avsc`)."""

from __future__ import annotations

from typing import Final

import orjson

from streams.core.inputs import Completion
from streams.wire.keys import check_key
from streams.wire.reading import MAX_VALUE_BYTES, Reader
from streams.wire.schema import cut_lengths

_READER: Final[Reader] = Reader("completion")
_CUT: Final = cut_lengths("completion")
_MAX_ERROR: Final = _CUT["error"]
_MAX_WORKER: Final = _CUT["worker"]


def decode_completion(
    key: bytes | None,
    value: bytes | None,
    offset: int,
    max_bytes: int = MAX_VALUE_BYTES,
) -> Completion:
    """Return the input that a record of the completions topic stands for; `offset` becomes its position.

    The tenant is the value's, whatever the key says. Raises `BadRecord`, naming the field.
    """
    check_key(key)
    message = _READER.read(value, max_bytes)
    error, worker = message.error, message.worker
    return Completion(
        offset,
        message.tenant,
        message.run_id,
        message.attempt,
        message.status,
        message.tokens,
        message.retryable,
        error[:_MAX_ERROR] if error else None,
        worker[:_MAX_WORKER] if worker else None,
    )


def encode_completion(
    *,
    tenant: str,
    run_id: str,
    attempt: int,
    status: str,
    tokens: int | None = None,
    retryable: bool = False,
    error: str | None = None,
    worker: str | None = None,
    shard: int | None = None,
) -> bytes:
    """Return the value that reports on an attempt. Its key is `tenant` in UTF-8.

    `status` is one of those in `streams.core.inputs`. Raises `BadRecord` for what the shard would refuse.
    """
    message: dict[str, object] = {"tenant": tenant, "run_id": run_id, "attempt": attempt, "status": status}
    if tokens is not None:
        message["tokens"] = tokens
    if retryable:
        message["retryable"] = True
    if error:
        message["error"] = error[:_MAX_ERROR]
    if worker:
        message["worker"] = worker[:_MAX_WORKER]
    if shard is not None:
        message["shard"] = shard
    value = orjson.dumps(message)
    decode_completion(None, value, 0)
    return value
