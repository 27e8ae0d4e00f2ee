"""Rows of the two sides: what is read, what is refused, what is written."""

from __future__ import annotations

import pytest

from streams.admin.migration import writing
from streams.admin.migration.filling import difference
from streams.admin.migration.sides import decoded, pair, shards_of
from streams.admin.migration.writing import batches
from streams.core.records import HistoryRecord, Record, ShardRecord
from streams.errors import ConfigError, StateUnreadable
from streams.rows import FillingRecord, MovedRecord, PositionsRecord
from streams.transactions import Out
from streams.wire import topic_names

WANTED: list[Record] = [ShardRecord(shard=1, shards=3, now_ms=5), HistoryRecord("t", "w", 1)]
FILLING = pair(1, FillingRecord("a.", 2))


def test_an_empty_partition_gets_all_rows() -> None:
    assert list(difference({}, WANTED, 1, "b.state")) == [Out("b.state", 1, *pair(1, row)) for row in WANTED]


def test_what_an_earlier_try_has_written_is_left_and_what_is_not_wanted_goes() -> None:
    other = pair(1, HistoryRecord("other", "w", 1))
    old = pair(1, HistoryRecord("t", "w", 7))
    there = dict([FILLING, other, old, pair(1, WANTED[0])])
    assert list(difference(there, WANTED, 1, "b.state")) == [
        Out("b.state", 1, *pair(1, WANTED[1])),
        Out("b.state", 1, other[0], None),
    ]
    assert not list(difference(dict([FILLING, *(pair(1, row) for row in WANTED)]), WANTED, 1, "b.state"))


def test_batches_are_bounded_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "RECORDS", 3)
    monkeypatch.setattr(writing, "BYTES", 100)
    sizes = [10, 10, 10, 10, 95, 10, 500, 1]
    records = [Out("t", number, None, b"x" * size) for number, size in enumerate(sizes)]
    assert [[record.partition for record in batch] for batch in batches(records, Out.size)] == [
        [0, 1, 2],
        [3],
        [4],
        [5],
        [6],
        [7],
    ]
    assert not list(batches([], Out.size))


def test_rows_are_told_apart() -> None:
    given = (PositionsRecord(1, {"requests": 4}), MovedRecord("b.", 3), FillingRecord("a.", 2))
    rows = decoded(dict([*(pair(1, row) for row in given), *(pair(1, row) for row in WANTED)]), 1, "a.state")
    assert (rows.positions, rows.moved, rows.filling) == given
    assert rows.records == WANTED
    assert (rows.applied("requests"), rows.applied("completions")) == (4, -1)
    assert decoded({}, 1, "a.state").applied("requests") == -1


def test_a_row_of_another_shard_is_refused() -> None:
    with pytest.raises(StateUnreadable, match=r"partition 0 of a\.state has a row of shard 1"):
        decoded(dict([FILLING]), 0, "a.state")


def test_a_deployment_is_known_by_its_topics() -> None:
    names = topic_names("a.")
    counts = dict.fromkeys(names, 4) | {names.dispatch: 8, names.policy: 1}
    assert shards_of(counts, names) == 4
    with pytest.raises(ConfigError, match=r"no deployment is there: a\.state is missing"):
        shards_of({name: count for name, count in counts.items() if name != names.state}, names)
    with pytest.raises(ConfigError, match=r"a\.requests has 4, a\.completions has 5"):
        shards_of(counts | {names.completions: 5}, names)
