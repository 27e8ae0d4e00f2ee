"""Dispatches: an attempt handed to the workers, or taken back from them (`schemas/dispatch.avsc`)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from streams.core.effects import Dispatch, Revoke
from streams.wire import body
from streams.wire.reading import Reader
from streams.wire.topics import MAX_MESSAGE_BYTES

_READER: Final[Reader] = Reader("dispatch")
_REVOKE: Final = "revoke"


class Assignment(NamedTuple):
    """One attempt of a run, as a worker gets it. `attempt` and `shard` are echoed in every completion."""

    tenant: str
    run_id: str
    workflow: str
    class_: str
    attempt: int  # from 1
    estimate: int  # tokens
    max_tokens: int | None  # the worker must not spend more
    lease_ms: int  # report within this time, or the attempt counts as lost
    deadline_ms: int | None  # ms since the epoch
    submitted_ms: int  # ms since the epoch; 0: unknown
    payload_json: bytes  # as the producer wrote it; empty: none
    headers: dict[str, str]
    shard: int
    step: int
    seq: int
    epoch: int

    @property
    def payload(self) -> Any:
        """The payload as Python values; None if there is none. Parsed at each call."""
        return orjson.loads(self.payload_json) if self.payload_json else None


class Revocation(NamedTuple):
    """An attempt that is not wanted any more: stop it, and report what it has spent."""

    tenant: str
    run_id: str
    attempt: int
    reason: str
    shard: int
    step: int
    seq: int
    epoch: int


def encode_dispatch(dispatch: Dispatch, shard: int, step: int, epoch: int) -> bytes:
    """Return the value that hands out an attempt. Its key is the `run_id` in UTF-8."""
    head = {
        "kind": "dispatch",
        "tenant": dispatch.tenant,
        "run_id": dispatch.run_id,
        "attempt": dispatch.attempt,
        "shard": shard,
        "step": step,
        "seq": dispatch.seq,
        "epoch": epoch,
        "workflow": dispatch.workflow,
        "class": dispatch.class_,
        "estimate": dispatch.estimate,
        "lease_ms": dispatch.lease_ms,
        "submitted_ms": dispatch.submitted_ms,
    }
    if dispatch.deadline_ms is not None:
        head["deadline_ms"] = dispatch.deadline_ms
    return body.splice(orjson.dumps(head), dispatch.body)


def encode_revoke(revoke: Revoke, shard: int, step: int, epoch: int) -> bytes:
    """Return the value that takes an attempt back. Its key is the `run_id` in UTF-8."""
    return orjson.dumps(
        {
            "kind": _REVOKE,
            "tenant": revoke.tenant,
            "run_id": revoke.run_id,
            "attempt": revoke.attempt,
            "shard": shard,
            "step": step,
            "seq": revoke.seq,
            "epoch": epoch,
            "reason": revoke.reason,
        }
    )


def decode_dispatch(value: bytes | None) -> Assignment | Revocation:
    """Return what a record of the dispatch topic says. Raises `BadRecord`, naming the field."""
    message = _READER.read(value, MAX_MESSAGE_BYTES)
    _READER.require(message, message.kind)
    if message.kind == _REVOKE:
        return Revocation(
            message.tenant,
            message.run_id,
            message.attempt,
            message.reason,
            message.shard,
            message.step,
            message.seq,
            message.epoch,
        )
    return Assignment(
        message.tenant,
        message.run_id,
        message.workflow,
        message.class_,
        message.attempt,
        message.estimate,
        message.max_tokens,
        message.lease_ms,
        message.deadline_ms,
        message.submitted_ms,
        bytes(message.payload),
        message.headers,
        message.shard,
        message.step,
        message.seq,
        message.epoch,
    )
