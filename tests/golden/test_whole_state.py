"""A shard's state and journal, as every version so far has written them, are loaded, kept and gone on from.

A failure here says that an upgrade would lose or change what lies in Kafka. What to do when a form changes, or when the
core is to decide otherwise, stands in `tests/data/golden/README.md`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streams.core import invariants
from streams.core.records import (
    EndedRecord,
    FlightRecord,
    FlowRecord,
    FlowState,
    RetryRecord,
    RunRecord,
    key_of,
)
from streams.errors import StateUnreadable
from streams.rows import FILLING, MOVED, Row, RuntimeRow, decode, decode_key, encode, row_key
from streams.rows.forms import FORMS
from streams.wire import decode_dispatch, decode_journal
from tests.assertions import plain, rows_of
from tests.golden.whole_state import decide_again, load, make, next_step

FOLDER = Path(__file__).parents[1] / "data" / "golden"
FILES = sorted(FOLDER.glob("state-v*.jsonl"))

KINDS = {form.kind for form in FORMS} - {MOVED, FILLING}  # a shard that has one of these two is not served

Lines = dict[str, list[dict[str, Any]]]  # by kind


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def lines(request: pytest.FixtureRequest) -> Lines:
    by_kind: Lines = defaultdict(list)
    for line in request.param.read_text(encoding="utf-8").splitlines():
        each = json.loads(line)
        by_kind[each["kind"]].append(each)
    return by_kind


def row_of(line: dict[str, Any]) -> Row | None:
    _, key = decode_key(line["key"].encode())
    return None if line["value"] is None else decode(key, line["value"].encode())


def test_there_is_a_state_of_every_version_of_the_forms() -> None:
    versions = {int(path.stem.removeprefix("state-v")) for path in FILES}
    assert versions == set(range(1, max(form.version for form in FORMS) + 1))


def test_the_state_has_everything_that_a_row_can_say(lines: Lines) -> None:
    _, _, rows = load(lines["state"])
    flights = [row for row in rows if isinstance(row, FlightRecord)]
    flows = [row for row in rows if isinstance(row, FlowRecord)]
    runs = {(row.tenant, row.run_id) for row in rows if isinstance(row, RunRecord)}
    assert {row_key(row)[0] for row in rows} == KINDS
    assert len({row.tenant for row in flows}) > 3
    assert len({row.class_ for row in flows}) > 1
    assert {row.state for row in flows} == set(FlowState)
    assert any(row.deficit < 0 for row in flows)
    assert runs - {(row.tenant, row.run_id) for row in flights}, "none is queued"
    assert {row.heard for row in flights} == {row.revoked for row in flights} == {True, False}
    assert any(row.charged > row.estimate for row in flights), "no heartbeat has owned up to more than was charged"
    assert any(isinstance(row, RetryRecord) and row.lost for row in rows)
    assert any(isinstance(row, EndedRecord) and row.lost for row in rows)


def test_a_state_is_loaded_and_dumped_as_it_was(lines: Lines) -> None:
    shard, _, rows = load(lines["state"])
    invariants.check(shard)
    given = {key_of(row): plain(row) for row in rows if not isinstance(row, RuntimeRow)}
    assert rows_of(shard) == given
    for row in rows:  # and once more, in the newest forms
        assert decode(row_key(row), encode(row)) == row


def test_a_journal_is_read_as_ever(lines: Lines) -> None:
    entries = [decode_journal(line["value"].encode()) for line in lines["journal"]]
    assert [entry.step for entry in entries] == list(range(1, len(entries) + 1))
    assert [after.step for before, after in pairwise(entries) if after.epoch > before.epoch] == [
        entry.step for entry in entries if entry.takeover and entry.step > 1
    ]
    assert {each.outcome for entry in entries for each in entry.settlements} == {"succeeded", "failed", "lost"}
    assert all(
        any(getattr(entry, what) for entry in entries) for what in ("decisions", "revokes", "rejections", "counts")
    )


def test_the_next_step_decides_what_it_would_have_decided(lines: Lines) -> None:
    shard, positions, _ = load(lines["state"])
    step = next_step(shard, positions, lines["input"], lines["next"][0]["now_ms"])
    assert step.journal is not None
    assert decode_journal(step.journal[1]) == decode_journal(lines["next journal"][0]["value"].encode())
    assert [decode_dispatch(value) for _, value in step.dispatches] == [
        decode_dispatch(line["value"].encode()) for line in lines["next dispatch"]
    ]
    written = [{"key": key.decode(), "value": value and value.decode()} for key, value in [*step.rows, step.positions]]
    assert {line["key"]: row_of(line) for line in written} == {line["key"]: row_of(line) for line in lines["next row"]}
    assert lines["next dispatch"], "it would prove little"
    invariants.check(shard)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_row_of_a_newer_version_is_refused(lines: Lines, kind: str) -> None:
    line = next(line for line in lines["state"] if decode_key(line["key"].encode())[1][0] == kind)
    newer = max(form.version for form in FORMS if form.kind == kind) + 1
    _, comma, rest = line["value"].partition(",")
    line["value"] = f"[{newer}{comma}{rest}"
    with pytest.raises(StateUnreadable, match=rf"'{kind}'.*was written by a newer fairstream \(version {newer} "):
        load(lines["state"])


def test_a_golden_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "state-v9.jsonl"
    path.touch()
    with pytest.raises(FileExistsError):
        make(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_to_decide_again_leaves_what_was(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    decide_again(copy)
    was, now = (
        [line for line in each.read_text().splitlines() if '"kind": "next ' not in line] for each in (path, copy)
    )
    assert was == now
