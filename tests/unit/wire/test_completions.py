"""Completions: what a worker may say about an attempt."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.core import inputs
from streams.core.inputs import Completion
from streams.errors import BadRecord
from streams.wire import decode_completion, encode_completion
from streams.wire.schema import load_schema
from tests.unit.wire.avro_values import assert_conforms

ECHO: dict[str, Any] = {"tenant": "acme", "run_id": "r-1", "attempt": 2}


def refusal(value: bytes | None, *, key: bytes | None = None) -> BadRecord:
    with pytest.raises(BadRecord) as refused:
        decode_completion(key, value, 3)
    return refused.value


@pytest.mark.parametrize("status", ["started", "heartbeat", "succeeded", "failed", "returned"])
def test_each_status(status: str) -> None:
    value = encode_completion(**ECHO, status=status)
    assert_conforms(value, "completion")
    assert decode_completion(b"acme", value, 3) == Completion(3, "acme", "r-1", 2, status)


def test_the_schema_and_the_core_name_the_same_statuses() -> None:
    symbols = next(spec for spec in load_schema("completion")["fields"] if spec["name"] == "status")["type"]["symbols"]
    assert symbols == [inputs.STARTED, inputs.HEARTBEAT, inputs.SUCCEEDED, inputs.FAILED, inputs.RETURNED]


def test_a_completion_with_everything() -> None:
    value = encode_completion(
        **ECHO, status="failed", tokens=900, retryable=True, error="out of quota", worker="w-7", shard=3
    )
    assert_conforms(value, "completion")
    assert decode_completion(None, value, 3) == Completion(
        3, "acme", "r-1", 2, "failed", 900, retryable=True, error="out of quota", worker="w-7"
    )


def test_a_long_error_is_cut_and_its_tokens_count() -> None:
    long = {**ECHO, "status": "failed", "tokens": 5, "error": "é" * 5_000, "worker": "w" * 5_000}
    for value in (encode_completion(**long), orjson.dumps(long)):
        completion = decode_completion(None, value, 3)
        assert (completion.error, completion.worker, completion.tokens) == ("é" * 1_000, "w" * 255, 5)


@pytest.mark.parametrize("tokens", [-100, 1.5, True, "100", 10**13, 2**70])
def test_09_tokens_that_are_no_amount_are_refused(tokens: Any) -> None:
    text = b'{"tenant":"a","run_id":"r","attempt":1,"status":"succeeded","tokens":%s}'
    refused = refusal(text % repr(tokens).replace("'", '"').replace("True", "true").encode())
    assert refused.field == "tokens"


def test_11_only_the_total_is_read() -> None:
    text = orjson.dumps({**ECHO, "status": "succeeded", "tokens": 50, "reasoning_tokens": 80})
    assert decode_completion(None, text, 3).tokens == 50


@pytest.mark.parametrize(("field", "value"), [("attempt", 0), ("status", "done"), ("retryable", "yes"), ("shard", -1)])
def test_a_wrong_field_is_named_with_its_value(field: str, value: Any) -> None:
    refused = refusal(orjson.dumps({**ECHO, "status": "started", field: value}))
    assert (refused.field, refused.value) == (field, value)


def test_61_a_key_that_is_not_utf8_is_refused() -> None:
    assert refusal(encode_completion(**ECHO, status="started"), key=b"\xa2\xff").field == "key"


@pytest.mark.parametrize(
    ("field", "value"), [("tokens", -1), ("tokens", 10**30), ("attempt", 0), ("run_id", "\udcff"), ("status", "done")]
)
def test_a_worker_is_told_what_the_shard_would_refuse(field: str, value: Any) -> None:
    with pytest.raises(BadRecord) as refused:
        encode_completion(**{**ECHO, "status": "succeeded", field: value})
    assert refused.value.field == field


def test_text_for_people_never_costs_a_report() -> None:
    # A program's output that is no UTF-8 comes to Python with such halves of surrogate pairs.
    value = encode_completion(**ECHO, status="failed", tokens=5, error="no \udcff", worker="\udcffw")
    completion = decode_completion(None, value, 3)
    assert (completion.error, completion.worker, completion.tokens) == ("no ?", "?w", 5)
