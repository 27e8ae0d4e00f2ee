"""Policy changes: what is read back is what was stated, and a wrong one is refused whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.core.policy import Policy, TenantRules, Window
from streams.errors import BadRecord
from streams.wire import PolicyChange, decode_policy, encode_policy
from tests.unit.wire.avro_values import assert_conforms

CHANGE = PolicyChange(
    Policy(
        name="live",
        quantum=500,
        window=Window(runs=None, tokens=2_000_000),
        tenants={"acme.com": TenantRules(plan="pro", weight=4, max_queued_runs=10), "é": TenantRules(paused=True)},
        closed=True,
    ),
    author="ann",
    applied_ms=1_000,
)


def changed(**fields: Any) -> bytes:
    message = orjson.loads(encode_policy(CHANGE))
    message["policy"].update(fields)
    return orjson.dumps(message)


def test_what_was_stated() -> None:
    value = encode_policy(CHANGE)
    assert_conforms(value, "policy")
    assert decode_policy(value) == CHANGE


def test_a_wrong_policy_is_refused_with_its_first_problem() -> None:
    with pytest.raises(BadRecord, match=r"policy.quantum: must be at least 1 \(got 0\)"):
        decode_policy(changed(quantum=0))
    with pytest.raises(BadRecord, match=r"policy.quantum: must be at least 1; and 1,001 more problems \(got 0\)"):
        decode_policy(changed(quantum=0, tenants={f"t{n}": {"weight": 0} for n in range(1_000)}, closes=True))


@pytest.mark.parametrize("author", ["x" * 256, "\udcff"])
def test_whoever_states_it_is_told_what_the_shards_would_refuse(author: str) -> None:
    with pytest.raises(BadRecord) as refused:
        encode_policy(CHANGE._replace(author=author))
    assert refused.value.field == "author"


@pytest.mark.parametrize("unknown", [b'"\xff":1', b'"x":"\xff"', b'"x":1e400', b'"x":1'])
def test_an_unknown_field_is_refused_whatever_is_in_it(unknown: bytes) -> None:
    with pytest.raises(BadRecord):
        decode_policy(encode_policy(CHANGE).replace(b'"quantum":', unknown + b',"quantum":'))


@pytest.mark.parametrize("value", [None, b"", b"{}", b'{"author":"a","applied_ms":1,"policy":[]}'])
def test_what_is_no_policy_is_refused(value: bytes | None) -> None:
    with pytest.raises(BadRecord):
        decode_policy(value)
