"""Dispatches: what a worker gets is what the shard decided and the producer wrote."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streams.core.effects import Dispatch, Revoke
from streams.core.inputs import Submit
from streams.errors import BadRecord
from streams.wire import (
    Assignment,
    Revocation,
    decode_dispatch,
    decode_request,
    encode_dispatch,
    encode_request,
    encode_revoke,
)
from tests.unit.wire.avro_values import assert_conforms


def dispatch(body: bytes = b"", **change: Any) -> Dispatch:
    plain = Dispatch(
        seq=9,
        tenant="acme",
        run_id="r-1",
        workflow="summarise",
        class_="default",
        attempt=2,
        estimate=1_200,
        lease_ms=60_000,
        deadline_ms=None,
        body=body,
        submitted_ms=5,
        round=3,
        deficit_before=0,
        deficit_after=-1_200,
    )
    return replace(plain, **change)


def test_what_was_asked_arrives() -> None:
    payload = b'{ "big": 123456789012345678901234567890, "price": 1.10 }'
    request = encode_request(
        tenant="acme",
        run_id="r-1",
        workflow="summarise",
        max_tokens=4_096,
        payload=orjson.Fragment(payload),
        headers={"traceparent": "00-ab"},
    )
    submit = decode_request(None, request, 0, 5)
    assert isinstance(submit, Submit)
    value = encode_dispatch(dispatch(submit.body, deadline_ms=77), shard=3, step=11, epoch=2)
    assert_conforms(value, "dispatch")
    assert decode_dispatch(value) == Assignment(
        tenant="acme",
        run_id="r-1",
        workflow="summarise",
        class_="default",
        attempt=2,
        estimate=1_200,
        max_tokens=4_096,
        lease_ms=60_000,
        deadline_ms=77,
        submitted_ms=5,
        payload_json=payload,
        headers={"traceparent": "00-ab"},
        shard=3,
        step=11,
        seq=9,
        epoch=2,
    )


def test_a_run_without_payload() -> None:
    value = encode_dispatch(dispatch(), shard=3, step=11, epoch=2)
    assert_conforms(value, "dispatch")
    got = decode_dispatch(value)
    assert isinstance(got, Assignment)
    assert (got.payload_json, got.payload, got.headers, got.max_tokens) == (b"", None, {}, None)


def test_the_payload_as_python_values() -> None:
    got = decode_dispatch(encode_dispatch(dispatch(b'{"payload":{"n":[1,null]}}'), shard=3, step=11, epoch=2))
    assert isinstance(got, Assignment)
    assert got.payload == {"n": [1, None]}


def test_a_revoke() -> None:
    value = encode_revoke(Revoke(10, "acme", "r-1", 2, "cancelled"), shard=3, step=11, epoch=2)
    assert_conforms(value, "dispatch")
    assert decode_dispatch(value) == Revocation("acme", "r-1", 2, "cancelled", shard=3, step=11, seq=10, epoch=2)


@pytest.mark.parametrize("field", ["workflow", "class", "estimate", "lease_ms", "seq"])
def test_a_dispatch_that_lacks_something_is_refused(field: str) -> None:
    message = orjson.loads(encode_dispatch(dispatch(), shard=3, step=11, epoch=2))
    del message[field]
    with pytest.raises(BadRecord) as refused:
        decode_dispatch(orjson.dumps(message))
    assert refused.value.field == field


def test_a_revoke_without_reason_is_refused() -> None:
    message = orjson.loads(encode_revoke(Revoke(10, "acme", "r-1", 2, "cancelled"), shard=3, step=11, epoch=2))
    del message["reason"]
    with pytest.raises(BadRecord, match="reason: missing"):
        decode_dispatch(orjson.dumps(message))


def test_reading_dispatches_takes_neither_faust_nor_kafka() -> None:
    script = "import sys, streams.wire; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"faust", "mode", "aiokafka", "confluent_kafka", "streams.core.shard"}.intersection(loaded)
