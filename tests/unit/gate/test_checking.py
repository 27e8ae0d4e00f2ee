"""What becomes of a record of an intake topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import reasons
from streams.errors import BadRecord
from streams.gate.checking import ADMITTED, MAX_HEADER_BYTES, Arrived, Checker, Headers, Verdict
from streams.wire import (
    FORWARDED,
    MAX_VALUE_BYTES,
    Position,
    Refusal,
    decode_rejection,
    encode_cancel,
    encode_request,
    intake_topic,
    partition_for,
    topic_names,
)

NAMES = topic_names("p.")
SHARDS = 4
NOW = 1_000_000
KAFKAS_DEFAULT_LIMIT = 1_048_588  # max.message.bytes
ACME = encode_request(tenant="acme", run_id="r", workflow="w", payload={"a": 1.50})
CHECKER = Checker("p.", NAMES, SHARDS)


def arrived(
    value: bytes | None = ACME,
    key: bytes | None = b"acme",
    headers: Headers | None = (),
    timestamp_ms: int = 999_000,
    topic: str = "p.requests.of.acme",
) -> Arrived:
    return Arrived(topic, 0, 17, timestamp_ms, key, value, headers)


def judge(record: Arrived) -> Verdict:
    return CHECKER.judge(record, NOW)


def refusal(verdict: Verdict) -> Refusal:
    assert verdict.refused
    assert verdict.topic == "p.rejected"
    found = decode_rejection(verdict.value)
    assert (found.step, found.at_ms) == (0, NOW)
    assert (found.shard, found.shard) == (verdict.partition, partition_for(verdict.key.decode(), SHARDS))
    return found


@pytest.mark.parametrize(
    "value", [ACME, encode_cancel(tenant="acme", run_id="r"), b' {"run_id":"r","workflow":"w","tenant":"acme","?":1} ']
)
def test_what_is_in_the_topics_tenants_name_is_passed_on_as_it_is(value: bytes) -> None:
    assert judge(arrived(value, headers=[("trace", b"1"), ("trace", None)])) == Verdict(
        "p.requests",
        partition_for("acme", SHARDS),
        b"acme",
        value,
        999_000,
        [("trace", b"1"), ("trace", None), (ADMITTED, b"p.requests.of.acme:0:17")],
        refused=False,
    )


@given(st.text(min_size=1, max_size=19))
def test_any_tenant_can_have_a_topic(tenant: str) -> None:
    verdict = judge(arrived(encode_request(tenant=tenant, run_id="r", workflow="w"), topic=intake_topic("p.", tenant)))
    assert (verdict.topic, verdict.key) == ("p.requests", tenant.encode())
    assert verdict.partition == partition_for(tenant, SHARDS)


@pytest.mark.parametrize(
    "value", [encode_request(tenant="globex", run_id="r", workflow="w"), encode_cancel(tenant="globex", run_id="r")]
)
def test_what_is_in_anothers_name_is_refused_under_the_writers(value: bytes) -> None:
    verdict = judge(arrived(value, key=b"globex"))
    assert verdict.key == b"acme"
    found = refusal(verdict)
    assert (found.reason, found.tenant, found.field, found.got) == (
        reasons.NOT_YOUR_TENANT,
        "acme",
        "tenant",
        '"globex"',
    )
    assert "p.requests.of.acme" in found.detail
    assert found.position == Position("p.requests.of.acme", 0, 17)
    assert (found.original, found.original_key) == (value, b"globex")


@pytest.mark.parametrize("key", [b"globex", b"", None])
def test_the_key_decides_nothing(key: bytes | None) -> None:
    verdict = judge(arrived(key=key))
    assert (verdict.topic, verdict.key, verdict.partition) == ("p.requests", b"acme", partition_for("acme", SHARDS))


@pytest.mark.parametrize("name", [FORWARDED, ADMITTED, "fairstream-", "FairStream-Forwarded-From"])
def test_marks_of_ours_are_left_out(name: str) -> None:
    headers = judge(arrived(headers=[(name, b"forged"), ("x-" + name, b"mine")])).headers
    assert headers == [("x-" + name, b"mine"), (ADMITTED, b"p.requests.of.acme:0:17")]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "value"),
        (b"", "value"),
        (b"{junk", "value"),
        (b"\x00\x00\x00\x00\x01abc", "value"),
        (b'{"tenant":"acme"}', "run_id"),
        (b'{"tenant":"acme","run_id":"r"}', "workflow"),
        (b'{"tenant":7,"run_id":"r","workflow":"w"}', "tenant"),
        (b"[" * 100_000, "value"),
        (b" " * (MAX_VALUE_BYTES + 1), "value"),
    ],
)
def test_what_shards_could_not_read_is_refused_with_their_words(value: bytes | None, field: str) -> None:
    found = refusal(judge(arrived(value)))
    assert (found.reason, found.field, found.tenant) == (reasons.INVALID, field, "acme")
    assert found.original == (None if value is None else value[:65_536])


def test_a_key_that_is_no_text_is_refused_as_shards_do() -> None:
    found = refusal(judge(arrived(key=b"\xff")))
    assert (found.reason, found.field, found.original_key) == (reasons.INVALID, "key", b"\xff")


@pytest.mark.parametrize("headers", [None, [("h", b"x" * MAX_HEADER_BYTES)], [("h", None)] * 4_000])
def test_headers_that_cannot_be_passed_on_are_refused(headers: Headers | None) -> None:
    assert refusal(judge(arrived(headers=headers))).field == "headers"


@pytest.mark.parametrize("names", ["h" * 100, "é" * 50, ""])
def test_whatever_passes_fits_into_a_message_of_kafkas_default_size(names: str) -> None:
    tenant = "\U00010348" * 19  # the longest in bytes that can have a topic
    start = encode_request(tenant=tenant, run_id="r", workflow="w")[:-1] + b',"?":"'
    value = start + b"x" * (MAX_VALUE_BYTES - len(start) - 2) + b'"}'
    headers = [(names, b"")] * (MAX_HEADER_BYTES // (len(names.encode()) + 8))
    verdict = judge(arrived(value, headers=headers, topic=intake_topic("p.", tenant)))
    assert not verdict.refused
    # Of a record, Kafka counts its fields and their lengths, of at most 5 bytes each, and 61 for its batch.
    size = len(verdict.value) + len(verdict.key) + 61 + 30
    size += sum(len(name.encode()) + len(content or b"") + 10 for name, content in verdict.headers)
    assert size <= KAFKAS_DEFAULT_LIMIT


@pytest.mark.parametrize(
    ("timestamp_ms", "passed"), [(1, 1), (NOW, NOW), (NOW + 1, NOW), (0, NOW), (-1, NOW), (1 << 62, NOW)]
)
def test_no_time_that_is_none_or_has_not_come(timestamp_ms: int, passed: int) -> None:
    assert judge(arrived(timestamp_ms=timestamp_ms)).timestamp_ms == passed


def test_a_topic_that_is_nobodys_lets_nothing_through() -> None:
    # `_61` is no way to write `a`: two topics would be the intake of one tenant.
    topic = "p.requests.of._61"
    verdict = judge(arrived(encode_request(tenant="a", run_id="r", workflow="w"), topic=topic))
    assert verdict.key == topic.encode()
    assert refusal(verdict).reason == reasons.NOT_YOUR_TENANT


def test_what_kafka_does_not_take_is_refused_with_its_place() -> None:
    found = refusal(CHECKER.refuse(arrived(), BadRecord("Kafka does not take it"), NOW))
    assert (found.reason, found.detail) == (reasons.INVALID, "Kafka does not take it")
    assert found.position == Position("p.requests.of.acme", 0, 17)


def test_a_value_that_names_two_tenants_is_read_as_shards_read_it() -> None:
    value = b'{"tenant":"globex","run_id":"r","workflow":"w","tenant":"acme"}'
    assert not judge(arrived(value)).refused
    assert judge(arrived(value, topic="p.requests.of.globex")).refused
