"""Completions: what a worker reports on one attempt (`schemas/completion.avsc`)."""

from __future__ import annotations

from typing import Final

from streams.core.inputs import Completion
from streams.wire.keys import check_key
from streams.wire.reading import Reader
from streams.wire.schema import cut_lengths
from streams.wire.writing import cut, to_json

_READER: Final[Reader] = Reader("completion")
_CUT: Final = cut_lengths("completion")
_MAX_ERROR: Final = _CUT["error"]
_MAX_WORKER: Final = _CUT["worker"]


def decode_completion(key: bytes | None, value: bytes | None, offset: int) -> Completion:
    """Return the input that a record of the completions topic stands for; `offset` becomes its position.

    The tenant is the value's, whatever the key says. Raises `BadRecord`, naming the field.
    """
    check_key(key)
    message = _READER.read(value)
    return Completion(
        offset,
        message.tenant,
        message.run_id,
        message.attempt,
        message.status,
        message.tokens,
        message.retryable,
        cut(message.error, _MAX_ERROR),
        cut(message.worker, _MAX_WORKER),
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

    `status` is one of those in `streams.core.inputs`. `error` and `worker` are cut and repaired, never refused.
    Raises `BadRecord` for what the shard would refuse.
    """
    message = {
        "tenant": tenant,
        "run_id": run_id,
        "attempt": attempt,
        "status": status,
        "tokens": tokens,
        "retryable": retryable or None,
        "error": cut(error, _MAX_ERROR),
        "worker": cut(worker, _MAX_WORKER),
        "shard": shard,
    }
    value = to_json(message)
    decode_completion(None, value, 0)
    return value
