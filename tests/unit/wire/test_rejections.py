"""Rejections: reason, position and enough to file the run again."""

from __future__ import annotations

import orjson
import pytest

from streams.core import reasons
from streams.core.effects import Rejection
from streams.errors import BadRecord
from streams.wire import (
    MAX_VALUE_BYTES,
    Position,
    Refusal,
    decode_rejection,
    decode_request,
    encode_rejection,
    encode_unreadable,
)
from streams.wire.rejections import ELSEWHERE, MAX_ORIGINAL_BYTES
from streams.wire.schema import load_schema
from tests.unit.wire.avro_values import assert_conforms

WHERE = Position("runs.requests", 3, 41)


def unreadable(key: bytes | None, value: bytes | None) -> bytes:
    with pytest.raises(BadRecord) as refused:
        decode_request(key, value, WHERE.offset, 0)
    return encode_unreadable(refused.value, key, value, WHERE, shard=3, step=9, at_ms=1_000)


def test_a_refused_run_comes_back_whole() -> None:
    rejection = Rejection(
        tenant="acme",
        run_id="r-1",
        reason=reasons.QUEUE_FULL,
        detail="1000 runs are queued",
        limit=1_000,
        value=1_000,
        retry_after_ms=5_000,
        position=41,
        body=b'{"max_tokens":10,"payload":{"n":1.10},"headers":{"a":"b"}}',
    )
    value = encode_rejection(rejection, WHERE, shard=3, step=9, at_ms=1_000)
    assert_conforms(value, "rejection")
    assert decode_rejection(value) == Refusal(
        reason="queue_full",
        detail="1000 runs are queued",
        position=WHERE,
        shard=3,
        step=9,
        at_ms=1_000,
        tenant="acme",
        run_id="r-1",
        field=None,
        got=None,
        limit=1_000,
        value=1_000,
        retry_after_ms=5_000,
        payload_json=b'{"n":1.10}',
        headers={"a": "b"},
        original=None,
        original_size=None,
        original_key=None,
    )


def test_a_run_that_was_moved_here_stands_elsewhere() -> None:
    """Its place below 0 would send a reader to another record: to Kafka -2 is the first of all."""
    rejection = Rejection("acme", "r-1", reasons.EXPIRED, "too late", 1, 2, None, -3, b'{"payload":1}')
    value = encode_rejection(rejection, Position("runs-b.requests", 0, -3), shard=0, step=9, at_ms=1_000)
    assert_conforms(value, "rejection")
    assert orjson.loads(value)["position"] is None
    assert decode_rejection(value).position == ELSEWHERE


def test_an_unreadable_record_is_set_aside_as_it_was() -> None:
    value = unreadable(b"\xa2\xff", b"\x00\x01\xfe")
    assert_conforms(value, "rejection")
    refusal = decode_rejection(value)
    assert (refusal.reason, refusal.field, refusal.position) == (reasons.INVALID, "key", WHERE)
    assert (refusal.original, refusal.original_size, refusal.original_key) == (b"\x00\x01\xfe", 3, b"\xa2\xff")


def test_a_wrong_field_is_told_with_its_value() -> None:
    refusal = decode_rejection(unreadable(None, b'{"tenant":"a","run_id":"r","workflow":"w","estimate":-5}'))
    assert (refusal.field, refusal.got) == ("estimate", "-5")
    assert "estimate" in refusal.detail


def test_a_record_without_value() -> None:
    refusal = decode_rejection(unreadable(None, None))
    assert (refusal.original, refusal.original_size) == (None, None)


@pytest.mark.parametrize("value", [b"[" * 10_000_000, b'{"tenant":"' + b"\x01" * (MAX_VALUE_BYTES - 100)])
def test_whatever_is_sent_its_rejection_stays_small(value: bytes) -> None:
    encoded = unreadable(b"\xff" * 1_000_000, value)
    assert_conforms(encoded, "rejection")
    assert len(encoded) < 200_000
    refusal = decode_rejection(encoded)
    assert (refusal.original, refusal.original_size) == (value[:MAX_ORIGINAL_BYTES], len(value))


def test_the_schema_lists_the_reasons_of_the_core() -> None:
    doc = next(spec for spec in load_schema("rejection")["fields"] if spec["name"] == "reason")["doc"]
    listed = set(doc.partition(": ")[2].rstrip(".").split(", "))
    assert listed == {value for name, value in vars(reasons).items() if name.isupper()}


@pytest.mark.parametrize("field", ["tenant", "action", "headers"])
def test_the_value_that_is_shown_is_short(field: str) -> None:
    message = {"tenant": "a", "run_id": "r", "workflow": "w", field: "x" * 500_000}
    refusal = decode_rejection(unreadable(None, orjson.dumps(message)))
    assert refusal.field == field
    assert refusal.got is not None
    assert len(refusal.got) == 200
    assert len(refusal.detail) < 400
