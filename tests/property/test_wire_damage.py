"""Every decoder, on good messages with a few bytes changed: what comes is read or refused, never anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.effects import Dispatch, Effects, Rejection, Revoke, Settlement
from streams.core.policy import Policy, TenantRules
from streams.core.shard import Shard
from streams.core.snapshot import ClassView
from streams.errors import BadRecord
from streams.wire import (
    InputRange,
    PolicyChange,
    Position,
    decode_completion,
    decode_dispatch,
    decode_journal,
    decode_policy,
    decode_rejection,
    decode_request,
    decode_status,
    encode_class_status,
    encode_completion,
    encode_dispatch,
    encode_journal,
    encode_policy,
    encode_rejection,
    encode_request,
    encode_revoke,
    encode_shard_status,
    encode_unreadable,
)

WHERE = Position("requests", 0, 4)
DISPATCH = Dispatch(1, "t", "r", "w", "c", 1, 5, 5, None, b'{"payload":{"a":[1]},"headers":{"a":"b"}}', 1, 1, 0, -5)
REVOKE = Revoke(2, "t", "r", 1, "cancelled")
REJECTION = Rejection("t", "r", "queue_full", "full", 1, 1, None, 0, b'{"payload":1}')
CLASS = ClassView(**{each.name: 5 for each in fields(ClassView)} | {"class_": "c"})  # type: ignore[arg-type]
STEP = Effects(1, 5)
STEP.dispatches.append(DISPATCH)
STEP.revokes.append(REVOKE)
STEP.rejections.append(REJECTION)
STEP.settlements.append(Settlement("t", "r", 1, "succeeded", 5, 5, reported=True))

MESSAGES: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "request": (
        lambda value: decode_request(None, value, 0, 0),
        encode_request(tenant="t", run_id="r", workflow="w", payload={"a": [1, "x"]}, headers={"a": "b"}, estimate=5),
    ),
    "completion": (
        lambda value: decode_completion(None, value, 0),
        encode_completion(tenant="t", run_id="r", attempt=1, status="failed", tokens=5, error="no", shard=0),
    ),
    "dispatch": (decode_dispatch, encode_dispatch(DISPATCH, 0, 1, 1)),
    "revoke": (decode_dispatch, encode_revoke(REVOKE, 0, 1, 1)),
    "rejection": (decode_rejection, encode_rejection(REJECTION, WHERE, shard=0, step=1, at_ms=1)),
    "journal": (
        decode_journal,
        encode_journal(STEP, shard=0, epoch=1, policy_version=-1, inputs=[InputRange("requests", 0, 4)]),
    ),
    "status": (decode_status, encode_shard_status(Shard(0, 1).snapshot().shard)[1]),
    "class status": (decode_status, encode_class_status(CLASS, 0, 5)[1]),
    "policy": (
        decode_policy,
        encode_policy(PolicyChange(Policy(tenants={"a": TenantRules(weight=3)}), "me", 1)),
    ),
}

TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s"]')
ODD: list[bytes] = [
    b"null",
    b"true",
    b"-1",
    b"1.5",
    b"1e400",
    b"9" * 20,
    b'"x"',
    b'""',
    b'"\xff"',
    b'"\\ud800"',
    b"{}",
    b"[]",
    b"[" * 300 + b"]" * 300,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b'"' + b"x" * 100_000 + b'"',
]


@st.composite
def damage(draw: st.DrawFn, value: bytes) -> bytes:
    """The value with another value somewhere, with a field that nobody knows, or with bytes changed."""
    match draw(st.sampled_from(["value", "field", "bytes"])):
        case "value":
            at, end = draw(st.sampled_from([token.span() for token in TOKENS.finditer(value)]))
            return value[:at] + draw(st.sampled_from(ODD)) + value[end:]
        case "field":
            at = draw(st.sampled_from([token.end() for token in TOKENS.finditer(value) if token[0] == b"{"]))
            name, what = draw(st.sampled_from([b'"new"', b'"\xff"', b'""'])), draw(st.sampled_from(ODD))
            return value[:at] + name + b":" + what + b"," + value[at:]
        case _:
            at = draw(st.integers(0, len(value)))
            return value[:at] + draw(st.binary(max_size=3)) + value[at + draw(st.integers(0, 3)) :]


@pytest.mark.parametrize("name", MESSAGES)
@given(data=st.data())
def test_a_damaged_message_is_read_or_refused(name: str, data: st.DataObject) -> None:
    decode, good = MESSAGES[name]
    assert decode(good)
    value = data.draw(damage(good))
    try:
        decode(value)
    except BadRecord as error:
        refused = error
    else:
        return
    # Whatever the reason, it can be told to those who wait for it.
    assert len(str(refused)) < 1_000
    assert decode_rejection(encode_unreadable(refused, None, value, WHERE, shard=0, step=1, at_ms=1)).detail
