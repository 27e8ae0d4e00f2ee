"""Requests: what is served, what is refused, and with which words."""

from __future__ import annotations

import datetime as dt
from typing import Any

import orjson
import pytest

from streams.core.inputs import Cancel, Submit
from streams.errors import BadRecord
from streams.wire import (
    MAX_VALUE_BYTES,
    Position,
    decode_rejection,
    decode_request,
    encode_cancel,
    encode_request,
    encode_unreadable,
)
from streams.wire.reading import MAX_DEPTH
from tests.unit.wire.avro_values import assert_conforms

PLAIN: dict[str, Any] = {"tenant": "acme", "run_id": "r-1", "workflow": "summarise"}


def submit(value: bytes, *, key: bytes | None = None, timestamp_ms: int = 1_000) -> Submit:
    decoded = decode_request(key, value, 7, timestamp_ms)
    assert isinstance(decoded, Submit)
    return decoded


def refusal(value: bytes | None, *, key: bytes | None = None) -> BadRecord:
    with pytest.raises(BadRecord) as refused:
        decode_request(key, value, 7, 1_000)
    return refused.value


def test_a_plain_request() -> None:
    value = encode_request(**PLAIN)
    assert_conforms(value, "run_request")
    assert submit(value) == Submit(7, "acme", "r-1", "summarise", submitted_ms=1_000)


def test_a_request_with_everything() -> None:
    value = encode_request(
        **PLAIN,
        class_="batch",
        estimate=1_200,
        max_tokens=4_096,
        not_before_ms=5,
        deadline_ms=6,
        max_attempts=2,
        lease_ms=30_000,
        payload={"text": ["é", 1.5, None]},
        headers={"traceparent": "00-ab"},
    )
    assert_conforms(value, "run_request")
    assert submit(value) == Submit(
        position=7,
        tenant="acme",
        run_id="r-1",
        workflow="summarise",
        class_="batch",
        estimate=1_200,
        max_tokens=4_096,
        not_before_ms=5,
        deadline_ms=6,
        max_attempts=2,
        lease_ms=30_000,
        submitted_ms=1_000,
        body='{"max_tokens":4096,"payload":{"text":["é",1.5,null]},"headers":{"traceparent":"00-ab"}}'.encode(),
    )


def test_a_cancel_needs_no_workflow() -> None:
    value = encode_cancel(tenant="acme", run_id="r-1")
    assert_conforms(value, "run_request")
    assert decode_request(None, value, 7, 1_000) == Cancel(7, "acme", "r-1")


def test_unknown_fields_are_passed_over() -> None:
    assert submit(orjson.dumps({**PLAIN, "colour": "blue", "more": {"tenant": 3}})).tenant == "acme"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("tenant", None, "null"),
        ("tenant", 5, "int"),
        ("tenant", "", "length >= 1"),
        ("run_id", ["x"], "array"),
        ("estimate", -1, ">= 0"),
        ("estimate", 1.0, "float"),
        ("estimate", True, "bool"),
        ("estimate", "12", "str"),
        ("max_attempts", 0, ">= 1"),
        ("action", "stop", "enum"),
        ("headers", ["a"], "array"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(field: str, value: Any, said: str) -> None:
    refused = refusal(orjson.dumps({**PLAIN, field: value}))
    assert (refused.field, refused.value) == (field, value)
    assert said in str(refused)


def test_a_number_beyond_64_bits_is_no_amount() -> None:
    refused = refusal(orjson.dumps(PLAIN)[:-1] + b',"estimate":%d}' % 2**70)
    assert refused.field == "estimate"


@pytest.mark.parametrize("field", ["tenant", "run_id", "workflow"])
def test_a_missing_field_is_named(field: str) -> None:
    refused = refusal(orjson.dumps({name: part for name, part in PLAIN.items() if name != field}))
    assert refused.field == field
    assert "missing" in str(refused)


def test_a_wrong_header_is_found_inside_its_map() -> None:
    assert refusal(orjson.dumps({**PLAIN, "headers": {"trace": 1}})).field == "headers[...]"


# --- faults of other projects, by their number


def test_61_a_key_that_is_not_utf8_refuses_its_own_record_only() -> None:
    value = encode_request(**PLAIN)
    served, refused = [], []
    for index in range(100):
        try:
            served.append(decode_request(b"\xa2\xff" if index == 50 else b"acme", value, index, 0).position)
        except BadRecord as error:
            refused.append((index, error.field))
    assert served == [*range(50), *range(51, 100)]
    assert refused == [(50, "key")]


def test_63_without_a_key_the_value_names_the_tenant() -> None:
    assert submit(encode_request(**PLAIN), key=None).tenant == "acme"
    assert refusal(b'{"run_id":"r","workflow":"w"}', key=None).field == "tenant"


def test_23_a_key_that_says_something_else_does_not_matter() -> None:
    assert submit(encode_request(**PLAIN), key=b"globex").tenant == "acme"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\x00\x01", "Avro"),
        (b"[]", "object"),
        (b"{}", "tenant: missing"),
        (b"", "not JSON"),
        (b'{"tenant":"a","run_id":"r","work', "not JSON"),
        (b"[" * 10_000_000, "at most 1000000"),
        (b"[" * 200, "object"),
        (b"[" * 1_000, "deeper"),
        (b'{"tenant":' + b"[" * 100_000, "deeper"),
        (b'{"other":' + b"[" * 100_000, "deeper"),
        (b'{"tenant":"\xff","run_id":"r","workflow":"w"}', "UTF-8"),
        (b'{"tenant":"\\ud800","run_id":"r","workflow":"w"}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"NaN", "not JSON"),
        (None, "no value"),
    ],
)
def test_65_what_cannot_be_read_is_refused_with_a_reason(value: bytes | None, said: str) -> None:
    assert said in str(refusal(value))


@pytest.mark.parametrize("timestamp_ms", [1_755_933_141_855_875, -1, 0])
def test_75_a_timestamp_that_is_no_time_is_unknown(timestamp_ms: int) -> None:
    assert submit(encode_request(**PLAIN), timestamp_ms=timestamp_ms).submitted_ms == 0


def test_75_the_last_time_that_is_one_has_a_date() -> None:
    last = submit(encode_request(**PLAIN), timestamp_ms=253_402_300_799_999).submitted_ms
    assert dt.datetime.fromtimestamp(last / 1000, tz=dt.UTC).year == 9999
    assert submit(encode_request(**PLAIN), timestamp_ms=last + 1).submitted_ms == 0


# --- the payload


def with_payload(payload: bytes) -> bytes:
    return b'{"tenant":"acme","run_id":"r-1","workflow":"w","payload":' + payload + b"}"


def test_a_payload_is_kept_as_it_was_written() -> None:
    payload = b'{ "big" : 123456789012345678901234567890, "price": 1.10, "\\u00e9": "\xc3\xa9", "big":2 }'
    assert submit(with_payload(payload)).body == b'{"payload":' + payload + b"}"


@pytest.mark.parametrize("payload", [b"null", b"0", b'""', b"[]", b"false"])
def test_a_payload_may_be_any_json_value(payload: bytes) -> None:
    assert submit(with_payload(payload)).body == b'{"payload":' + payload + b"}"


@pytest.mark.parametrize("payload", [b'"\xff"', b"1e400", b'"\\udc00"'])
def test_a_payload_that_not_every_reader_can_read_is_refused(payload: bytes) -> None:
    assert refusal(with_payload(payload)).field in {"payload", "value"}


@pytest.mark.parametrize("frames", [0, 400])
@pytest.mark.parametrize("place", ["payload", "other", "tenant", "headers"])
def test_depth_has_one_bound_wherever_it_is_and_the_caller_stands(place: str, frames: int) -> None:
    def said_of(depth: int, frames: int) -> str:
        if frames:
            return said_of(depth, frames - 1)
        good = orjson.dumps(PLAIN)[:-1]
        value = good + b',"%s":' % place.encode() + b'["",' * (depth - 1) + b"1" + b"]" * (depth - 1) + b"}"
        try:
            return repr(submit(value))
        except BadRecord as error:
            return decode_rejection(
                encode_unreadable(error, None, value, Position("t", 0, 0), shard=0, step=1, at_ms=1)
            ).detail

    assert "nested" not in said_of(MAX_DEPTH, frames)
    for depth in (MAX_DEPTH + 1, 600, 950, 1_020, 5_000):
        assert said_of(depth, frames) == f"value: nested deeper than {MAX_DEPTH}"


@pytest.mark.parametrize("text", [r"\\", r"\"", r"\\\"[", "[{", r"[\\\\"])
def test_brackets_in_a_text_are_not_depth(text: str) -> None:
    payload = b"[" + b",".join([b'"' + text.encode() + b'"'] * 1_000) + b"]"
    assert submit(with_payload(payload)).body == b'{"payload":' + payload + b"}"


def test_many_brackets_side_by_side_are_not_depth() -> None:
    payload = b"[" + b",".join([b"{}"] * 10_000) + b"]"
    assert submit(with_payload(payload)).body == b'{"payload":' + payload + b"}"


# --- the size


def test_the_size_is_looked_at_before_anything_is_read() -> None:
    room = MAX_VALUE_BYTES - len(encode_request(**PLAIN, payload=""))
    assert submit(encode_request(**PLAIN, payload="x" * room)).tenant == PLAIN["tenant"]
    with pytest.raises(BadRecord, match=f"{MAX_VALUE_BYTES + 1} bytes, at most {MAX_VALUE_BYTES}"):
        encode_request(**PLAIN, payload="x" * (room + 1))


# --- the producer's side


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tenant": ""}, "tenant"),
        ({"estimate": -5}, "estimate"),
        ({"payload": object()}, "payload"),
        ({"payload": 2**64}, "payload"),
        ({"payload": {"text": "\ud800"}}, "payload"),
        ({"payload": "x" * MAX_VALUE_BYTES}, "value"),
        ({"headers": {"k": 1}}, "headers[...]"),
        ({"run_id": "\ud800"}, "run_id"),
        ({"payload": orjson.Fragment(b'1,"tenant":"globex"')}, "payload"),
        ({"payload": orjson.Fragment(b"nan")}, "payload"),
        ({"payload": orjson.Fragment(b"")}, "payload"),
    ],
)
def test_a_producer_is_told_what_the_shard_would_refuse(change: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRecord) as refused:
        encode_request(**{**PLAIN, **change})
    assert refused.value.field == field


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_a_producer_whose_payload_nests_too_deep_is_told(depth: int) -> None:
    payload: list[Any] = []
    for _ in range(depth - 1):
        payload = [payload]
    with pytest.raises(BadRecord, match="payload"):
        encode_request(**PLAIN, payload=payload)


def test_json_text_can_be_given_as_it_is() -> None:
    value = encode_request(**PLAIN, payload=orjson.Fragment(b'{"n": 1.10}'))
    assert submit(value).body == b'{"payload":{"n": 1.10}}'
