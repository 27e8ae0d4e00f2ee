"""Rows: what is refused, and with which words."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import get_type_hints

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import records
from streams.core.flows import Flow, Tenant
from streams.core.policy import Policy, TenantRules
from streams.core.records import Key
from streams.errors import StateUnreadable
from streams.rows import PositionsRecord, decode, decode_key, encode, encode_key, row_key
from streams.rows.forms import FORMS, Form
from tests.compiled import interpreted

RUN: Key = ("run", "acme", "r-1")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}-{form.version}")
def test_a_form_has_each_field_of_its_record_once(form: Form) -> None:
    """But for fields that came later, which have a default and stand at the end."""
    held = [*form.key, *form.value, *([form.body] if form.body else [])]
    of_record = fields(form.record)
    assert sorted(held) == sorted(each.name for each in of_record[: len(held)])
    newest = max(each.version for each in FORMS if each.kind == form.kind)
    later = of_record[len(held) :]
    assert form.version < newest or not later
    assert all(each.default is not MISSING or each.default_factory is not MISSING for each in later)


@interpreted
@pytest.mark.parametrize("form", {form.kind: form for form in FORMS}.values(), ids=lambda form: form.kind)
def test_the_newest_form_of_a_kind_has_the_types_of_its_record(form: Form) -> None:
    body = {form.body: bytes} if form.body else {}
    assert form.key | form.value | body == get_type_hints(form.record, localns={"Policy": Policy})


def test_no_two_forms_answer_to_one_kind_and_version() -> None:
    assert len({(form.kind, form.version) for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (RUN, b'[2,"w","c",1]\n', "newer fairstream (version 2 of its form; 1 is known"),
        (RUN, b'[99,{"all":"different"}]', "newer fairstream (version 99"),
        (RUN, b'["1","w"]', "does not begin with the version"),
        (RUN, b'[0,"w"]', "does not begin with the version"),
        (RUN, b"", "does not begin with the version"),
        (RUN, b'{"workflow":"w"}', "does not begin with the version"),
        (("flavour", "x"), b"[1,2]", "unknown kind 'flavour'"),
        (RUN, b'[1,"w"]\n', "cannot be read"),
        (RUN, b'[1,"w","c",1,2,null,null,3,4,5,6,7]\n', "cannot be read"),
        (RUN, b'[1,"w","c","1",2,null,null,3,4,5,6]\n', "cannot be read"),
        (RUN, b'[1,"w","c",1,2,null,null,3,4,5', "cannot be read"),
        (("run", "acme"), b'[1,"w","c",1,2,null,null,3,4,5,6]\n', "1 parts instead of 2"),
        (("ended", "soon"), b"[1,4,[]]", "cannot be read"),
        (("ended", "03"), b"[1,4,[]]", "cannot be read"),
        (("ended", " 3"), b"[1,4,[]]", "cannot be read"),
        (("ended", "1_0"), b"[1,4,[]]", "cannot be read"),
        (("ended", "\u0663"), b"[1,4,[]]", "cannot be read"),
        (("ended", "9" * 5_000), b"[1,4,[]]", "cannot be read"),
        (("policy",), b'[1,3,{"quantum":0}]', "quantum: must be at least 1"),
        (("policy",), b"[1,3," + b'{"a":' * 5_000, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused(key: Key, value: bytes, said: str) -> None:
    with pytest.raises(StateUnreadable) as refused:
        decode(key, value)
    assert said in str(refused.value)
    assert key[0] in str(refused.value)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"[3]", b'["3","run"]', b"[3,4]", b'[3,"run",null]', b"{}", b'[true,"run"]']
)
def test_keys_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(StateUnreadable):
        decode_key(data)


@pytest.mark.parametrize("data", [b'[3, "run","a","b"]', b'[3,"run","a","b"]\n', b'[3,"run","\\u0061","b"]'])
def test_a_key_is_spelled_in_one_way(data: bytes) -> None:
    """Compaction would keep the other spelling as a row of its own, beside the one that replaces it."""
    assert decode_key(b'[3,"run","a","b"]') == (3, ("run", "a", "b"))
    with pytest.raises(StateUnreadable, match="a row's key is not"):
        decode_key(data)


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=3))
def test_a_key_is_spelled_as_ever_whatever_is_in_a_name(names: list[str]) -> None:
    """By whoever encodes it: rows with other keys would stand beside those that are there."""
    key = encode_key(7, tuple(names))
    assert key == orjson.dumps([7, *names])
    assert decode_key(key) == (7, tuple(names))


def test_names_with_separators_do_not_meet() -> None:
    keys: list[Key] = [("run", "a", "b/c"), ("run", "a/b", "c"), ("run", 'a","b', "c"), ("run", "a", "b", "c")]
    assert len({encode_key(0, key) for key in keys}) == len(keys)
    assert [decode_key(encode_key(0, key)) for key in keys] == [(0, key) for key in keys]


def test_a_body_is_kept_without_being_escaped() -> None:
    body = b'{"payload": "line\\n feed",\n "big": 123456789012345678901234567890}\n\xff'
    run = records.RunRecord("acme", "r-1", "w", "c", 1, 2, None, None, 3, 4, 5, 6, body)
    assert encode(run).endswith(b"\n" + body)
    assert decode(row_key(run), encode(run)) == run


def test_the_policy_of_a_row_is_checked_as_a_whole() -> None:
    row = records.PolicyRecord(3, Policy())
    assert decode(row_key(row), encode(row)) == row


def test_positions_are_named_without_a_prefix_and_come_back() -> None:
    row = PositionsRecord(epoch=4, applied={"requests": 17, "policy": 0}, partitions={"requests": 8})
    assert row_key(row) == ("positions",)
    assert decode(row_key(row), encode(row)) == row


def test_a_living_form_of_a_record_is_the_same_row() -> None:
    record = records.FlowRecord("batch", "acme", 3, 4)
    assert encode(Flow(record, Tenant("acme", TenantRules()), 100)) == encode(record)
