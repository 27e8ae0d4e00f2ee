"""Messages from outside: whatever bytes come, they are read or refused, and what is read arrives unchanged."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from streams.core.effects import Dispatch, Rejection
from streams.core.inputs import Completion, Submit
from streams.errors import BadRecord
from streams.wire import (
    Assignment,
    Position,
    decode_completion,
    decode_dispatch,
    decode_rejection,
    decode_request,
    encode_completion,
    encode_dispatch,
    encode_rejection,
    encode_request,
    encode_unreadable,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
optional_tokens = st.none() | st.integers(1, 10**12)
optional_ms = st.none() | st.integers(1, 2_592_000_000)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
payloads = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
headers = st.dictionaries(texts, texts, max_size=3)
requests: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"tenant": texts, "run_id": texts, "workflow": texts},
    optional={
        "class_": st.none() | texts,
        "estimate": optional_tokens,
        "max_tokens": optional_tokens,
        "not_before_ms": optional_ms,
        "deadline_ms": optional_ms,
        "max_attempts": st.none() | st.integers(1, 1_000),
        "lease_ms": optional_ms,
        "payload": payloads,
        "headers": headers,
    },
)


def submitted(request: dict[str, Any], offset: int = 0) -> Submit:
    decoded = decode_request(None, encode_request(**request), offset, 5)
    assert isinstance(decoded, Submit)
    return decoded


@given(requests, st.integers(0, 2**62))
def test_a_request_says_what_was_asked(request: dict[str, Any], offset: int) -> None:
    submit = submitted(request, offset)
    assert submit.position == offset
    for name in request.keys() - {"payload", "headers"}:
        assert getattr(submit, name) == request[name]


@given(requests, st.integers(1, 1_000), st.integers(0, 10**12), st.integers(0, 2**62))
def test_a_worker_gets_what_the_producer_wrote(request: dict[str, Any], attempt: int, estimate: int, seq: int) -> None:
    submit = submitted(request)
    dispatch = Dispatch(
        seq=seq + 1,
        tenant=submit.tenant,
        run_id=submit.run_id,
        workflow=submit.workflow,
        class_=submit.class_ or "default",
        attempt=attempt,
        estimate=estimate,
        lease_ms=1_000,
        deadline_ms=submit.deadline_ms,
        body=submit.body,
        submitted_ms=submit.submitted_ms,
        round=1,
        deficit_before=0,
        deficit_after=-estimate,
    )
    got = decode_dispatch(encode_dispatch(dispatch, shard=3, step=9, epoch=2))
    assert isinstance(got, Assignment)
    assert got.payload == request.get("payload")
    assert got.headers == (request.get("headers") or {})
    assert got.max_tokens == request.get("max_tokens")
    assert (got.tenant, got.run_id, got.workflow) == (request["tenant"], request["run_id"], request["workflow"])
    assert (got.attempt, got.estimate, got.seq) == (attempt, estimate, seq + 1)


@given(requests)
def test_a_refused_run_can_be_filed_again(request: dict[str, Any]) -> None:
    submit = submitted(request)
    rejection = Rejection(submit.tenant, submit.run_id, "queue_full", "full", 1, 1, None, 0, submit.body)
    refusal = decode_rejection(encode_rejection(rejection, Position("t", 0, 0), shard=0, step=1, at_ms=1))
    again: dict[str, Any] = {**request, "headers": refusal.headers}
    if refusal.payload_json:
        again["payload"] = orjson.Fragment(refusal.payload_json)
    assert submitted(again) == submit


completions: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "tenant": texts,
        "run_id": texts,
        "attempt": st.integers(1, 1_000_000),
        "status": st.sampled_from(["started", "heartbeat", "succeeded", "failed", "returned"]),
        "tokens": st.none() | st.integers(0, 10**12),
        "retryable": st.booleans(),
        "error": st.none() | texts,
        "worker": st.none() | texts,
    }
)


@given(completions, st.integers(0, 2**62))
def test_a_completion_says_what_was_reported(report: dict[str, Any], offset: int) -> None:
    value = encode_completion(**report, shard=3)
    assert decode_completion(report["tenant"].encode(), value, offset) == Completion(position=offset, **report)


# --- bytes from anybody


_fragments = st.sampled_from(
    [
        b'"tenant":',
        b'"run_id":',
        b'"payload":',
        b'"headers":',
        b'"estimate":',
        b'"a"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
    ]
)
_deep = st.tuples(_fragments, st.integers(200, 2_000)).map(lambda pair: pair[0] * pair[1])
_junk = st.binary(max_size=40) | st.lists(_fragments | st.binary(max_size=3) | _deep, max_size=20).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good request with a few bytes changed, cut or doubled."""
    value = bytearray(encode_request(**draw(requests)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(value) - 1))
        value[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2) | _fragments | _deep)
        value = value or bytearray(b"{")
    return bytes(value)


@given(_junk | damaged(), st.none() | st.binary(max_size=4))
def test_any_bytes_are_read_or_refused_and_the_refusal_can_be_written(value: bytes, key: bytes | None) -> None:
    try:
        decoded = decode_request(key, value, 4, 5)
    except BadRecord as error:
        refusal = decode_rejection(
            encode_unreadable(error, key, value, Position("requests", 0, 4), shard=0, step=1, at_ms=5)
        )
        assert (refusal.original, refusal.original_key) == (value, key)
        return
    if isinstance(decoded, Submit) and decoded.body:
        # Whatever is accepted can be read by every worker.
        assert isinstance(orjson.loads(decoded.body), dict)


@given(_junk, st.none() | st.binary(max_size=4))
def test_any_bytes_are_a_completion_or_refused(value: bytes, key: bytes | None) -> None:
    try:
        completion = decode_completion(key, value, 4)
    except BadRecord:
        return
    assert completion.tokens is None or completion.tokens >= 0
