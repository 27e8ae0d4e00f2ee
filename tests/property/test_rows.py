"""Rows: whatever a record holds comes back from its bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import records
from streams.core.policy import Policy
from streams.core.records import FlowState, Key
from streams.errors import StateUnreadable
from streams.rows import FILLING, MOVED, POSITIONS, Row, decode, decode_key, encode, encode_key, row_key
from streams.rows.forms import FORMS, Form
from tests.unit.core.any_policies import names, policies

# Names are anything that UTF-8 can hold: quotes, brackets, line feeds and separators come up by themselves.
texts = names | st.sampled_from(['","', "\n", "[", '\\"', "a/b:c|d", "\x00", "\u2028"])
small = st.integers(0, 2**31 - 1)
signed = st.integers(-(2**63), 2**63 - 1)
optional = st.none() | signed
counted = st.dictionaries(signed, signed, max_size=3)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: signed,
    int | None: optional,
    bool: st.booleans(),
    str: texts,
    bytes: st.binary() | st.sampled_from([b"", b"\n", b"\n\n", b'{"payload":1}', b'\n{"payload":"\xc3\xa9"}\n']),
    FlowState: st.sampled_from(FlowState),
    Policy: policies(),
    dict[int, int]: counted,
    dict[str, int]: st.dictionaries(texts, signed, max_size=3),
    dict[str, str]: st.dictionaries(texts, texts, max_size=3),
    list[tuple[str, str]]: st.lists(st.tuples(texts, texts), max_size=3),
    list[tuple[str, str, str, int, int]]: st.lists(st.tuples(texts, texts, texts, signed, signed), max_size=3),
}


def rows_of(form: Form) -> st.SearchStrategy[Row]:
    """Any row of a kind: a field that is added to its record is tried here by itself."""
    values = {name: VALUES[type_] for name, type_ in form.value.items()}
    key = {name: small if type_ is int else VALUES[type_] for name, type_ in form.key.items()}  # counted from 0
    body = {form.body: VALUES[bytes]} if form.body else {}
    return st.builds(form.record, **values | key | body)


rows = st.one_of([rows_of(form) for form in FORMS])
keys = st.lists(texts, min_size=1, max_size=4).map(tuple)


@given(small, rows)
def test_a_row_comes_back_as_it_was(shard: int, row: Row) -> None:
    key, value = encode_key(shard, row_key(row)), encode(row)
    assert decode_key(key) == (shard, row_key(row))
    back = decode(row_key(row), value)
    assert back == row
    assert type(back) is type(row)
    assert encode(back) == value


@given(small, keys, small, keys)
def test_keys_are_equal_only_if_their_bytes_are(shard: int, key: Key, other_shard: int, other: Key) -> None:
    assert ((shard, key) == (other_shard, other)) == (encode_key(shard, key) == encode_key(other_shard, other))


@given(small, keys)
def test_a_key_comes_back_as_it_was(shard: int, key: Key) -> None:
    assert decode_key(encode_key(shard, key)) == (shard, key)


@given(rows, st.data())
def test_damaged_bytes_are_refused_or_hold_a_row(row: Row, data: st.DataObject) -> None:
    value = bytearray(encode(row))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    try:
        back = decode(row_key(row), bytes(value))
    except StateUnreadable:
        return
    assert type(back) is type(row)


@given(st.binary(max_size=30))
def test_bytes_that_are_no_key_are_refused(data: bytes) -> None:
    try:
        shard, key = decode_key(data)
    except StateUnreadable:
        return
    assert decode_key(encode_key(shard, key)) == (shard, key)


def test_every_kind_is_tried_here() -> None:
    kinds = {value for name, value in vars(records).items() if name.isupper() and isinstance(value, str)}
    assert {form.kind for form in FORMS} == kinds | {POSITIONS, MOVED, FILLING}


def test_states_are_kept_as_numbers() -> None:
    flow = records.FlowRecord("c", "t", 0, state=FlowState.BLOCKED)
    value = encode(flow)
    assert value.startswith(b"[1,0,0,0,false,2,")
    with pytest.raises(StateUnreadable):
        decode(row_key(flow), value.replace(b",false,2,", b",false,9,"))
