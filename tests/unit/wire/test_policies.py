"""Policy changes: what is read back is what was stated, and a wrong one is refused whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.policy import Leases, Limits, Policy, PriorityClass, TenantRules, Window
from streams.core.policy_check import parse_policy
from streams.errors import BadRecord
from streams.wire import MAX_POLICY_BYTES, PolicyChange, decode_policy, encode_policy, policy_bytes
from streams.wire.policies import short_document
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


RICH = Policy(
    name="rich",
    quantum=700,
    classes=(PriorityClass(name="urgent", weight=3), PriorityClass(name="batch")),
    between_classes="shares",
    default=TenantRules(plan="free", weight=2, max_runs_in_flight=3),
    tenants={
        "as the default": TenantRules(plan="free", weight=2, max_runs_in_flight=3),
        "as built in": TenantRules(),
        "member": TenantRules(plan="pro", group="guild", weight=9, paused=True),
    },
    groups={"crowd": 5, "guild": 1},
    limits=Limits(max_queued_runs=None, overload="drop_longest"),
    leases=Leases(lease_ms=70_000),
    closed=True,
    on_removal="reject",
)


@pytest.mark.parametrize("policy", [Policy(), RICH, CHANGE.policy])
def test_a_short_document_states_the_same_policy(policy: Policy) -> None:
    assert parse_policy(short_document(policy)) == policy


any_rules = st.builds(
    TenantRules,
    plan=st.sampled_from((None, "free", "pro")),
    weight=st.integers(1, 2),
    max_runs_in_flight=st.sampled_from((None, 1)),
    max_tokens_in_flight=st.sampled_from((None, 9)),
    max_queued_runs=st.sampled_from((None, 1)),
    max_queued_tokens=st.sampled_from((None, 9)),
    paused=st.booleans(),
)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=2)


@given(any_rules, st.dictionaries(names, any_rules, max_size=4))
def test_a_short_document_states_any_rules(default: TenantRules, tenants: dict[str, TenantRules]) -> None:
    policy = Policy(default=default, tenants=tenants)
    assert parse_policy(orjson.loads(orjson.dumps(short_document(policy)))) == policy


def test_what_is_as_by_default_is_left_out() -> None:
    assert short_document(Policy(name="default")) == {"name": "default"}
    assert short_document(RICH)["tenants"]["as the default"] == {}
    assert short_document(RICH)["leases"] == {"lease_ms": 70_000}


def named(tenants: int) -> Policy:
    return Policy(tenants={f"{'x' * 180}{number:05}": TenantRules(weight=2) for number in range(tenants)})


def test_a_policy_that_has_no_room_in_a_journal_record_is_refused_before_it_is_written() -> None:
    per_tenant = policy_bytes(named(2)) - policy_bytes(named(1))
    most = MAX_POLICY_BYTES // per_tenant
    assert most > 15_000  # of very long names
    encode_policy(CHANGE._replace(policy=named(most - 10)))
    with pytest.raises(BadRecord, match=r"policy: needs \d+ bytes in the journal, 3145728 at most: name fewer tenants"):
        encode_policy(CHANGE._replace(policy=named(most + 10)))


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
