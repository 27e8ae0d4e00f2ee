"""Rows of the state topic that do not say what the journal adds up to: each is named, with both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from streams.audit.recording import MemoryRecording
from streams.core.records import FLIGHT, FLOW, RING, RUN, Key
from streams.core.records import SHARD as SHARD_ROW
from streams.rows import Row, decode, decode_key, encode
from tests.unit.audit.verify.tampered import SHARD, check, recording
from tests.unit.audit.verify.tampering import records


def with_another(kind: str, change: Callable[[Any], Row] | None) -> tuple[MemoryRecording, Key]:
    """The last row of a kind that is still there says something else; None: it is gone. And its key."""
    own = records(recording(), "state", SHARD)
    last = {each.key or b"": index for index, each in enumerate(own)}
    there = [index for key, index in last.items() if decode_key(key)[1][0] == kind and own[index].value is not None]
    index = max(there)
    key = decode_key(own[index].key or b"")[1]
    value = None if change is None else encode(change(decode(key, own[index].value or b"")))
    own[index] = own[index]._replace(value=value)
    return recording().replaced({("state", SHARD): own}), key


def another(**fields: int) -> Callable[[Any], Row]:
    """Add to fields of a row."""

    def change(row: Any) -> Row:
        changed: Row = replace(row, **{name: getattr(row, name) + more for name, more in fields.items()})
        return changed

    return change


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (FLOW, another(charged=7), "the journal adds up to"),
        (FLOW, another(actual=-7), "the journal adds up to"),
        (FLOW, another(dispatched=1), "the journal adds up to"),
        (RING, another(past_charged=7), "in the ring's sum"),
        (RUN, another(position=1), "its row says"),
        (RUN, None, "there are rows of"),
        (FLIGHT, another(charged=7), "in its row"),
        (FLIGHT, another(seq=1), "in its row"),
        (FLIGHT, None, "there are rows of"),
        (SHARD_ROW, another(now_ms=1), "the row says step"),
    ],
)
def test_a_row_that_is_another(kind: str, change: Callable[[Any], Row] | None, said: str) -> None:
    given, key = with_another(kind, change)
    problems = [each for each in check(given).problems if each.check != "accounts"]
    assert {(each.check, each.shard, each.topic) for each in problems} == {("rows", SHARD, "state")}
    assert any(each.sentence.startswith("the rows hash to") for each in problems)
    named = [each.sentence for each in problems if said in each.sentence]
    assert named
    names = [] if kind in {RING, SHARD_ROW} or change is None else key[1:3]
    assert all(name in named[0] for name in names)


@pytest.mark.parametrize(
    ("kind", "change"),
    [(FLOW, another(charged=7)), (FLOW, another(actual=-7)), (FLIGHT, another(charged=7)), (FLIGHT, None)],
)
def test_rows_contradict_each_other_wherever_the_journal_begins(kind: str, change: Callable[[Any], Row] | None) -> None:
    """As it is deleted by age: then there is nothing that they could be held against."""
    given, key = with_another(kind, change)
    journal = records(given, "journal", SHARD)
    report = check(given.replaced({("journal", SHARD): journal[len(journal) // 2 :]}))
    (problem,) = [each for each in report.problems if each.check == "accounts"]
    tenant = key[2] if kind == FLOW else key[1]
    assert (problem.shard, problem.topic) == (SHARD, "state")
    assert problem.sentence.startswith(f"{tenant} in class ")
