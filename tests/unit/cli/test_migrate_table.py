from __future__ import annotations

import pytest

from streams.admin.migration.migrate import Outcome
from streams.cli.migrate import _as_data, _Plain, _show
from streams.core.stock import Line


def outcome(**fields: object) -> Outcome:
    made = Outcome("runs.", 2, "runs-b.", 3, lines=[Line("queued runs", 1_200, 1_200, ())], runs=[500, 400, 300])
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_what_has_moved_is_told_with_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    _show(outcome(opened=True, copied=1, expired=7, remarks=["mind this"]))
    said = capsys.readouterr().out
    assert "runs.* (2 shards) has moved to runs-b.* (3 shards)" in said
    assert "1,200           1,200  equal" in said
    assert "runs of each new shard: 500, 400, 300" in said
    assert "copied 1 unread input\n7 offsets" in said
    assert "note: mind this" in said
    assert "--prefix runs-b." in said


def test_what_differs_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lost = outcome(lines=[Line("queued runs", 2, 1, (("t", "r1"),)), Line("histories", 2, 1, ())])
    _show(lost)
    said = capsys.readouterr().out
    assert "has not moved" in said
    assert "DIFFERENT: t/r1" in said
    assert "DIFFERENT: their number" in said
    assert not lost.equal
    assert "Start schedulers" not in said


def test_a_dry_run_says_would(capsys: pytest.CaptureFixture[str]) -> None:
    _show(outcome(dry_run=True))
    assert "would move" in capsys.readouterr().out


def test_as_data() -> None:
    data = _as_data(outcome())
    assert data["lines"] == [{"what": "queued runs", "before": 1_200, "after": 1_200, "differing": (), "equal": True}]
    assert (data["to"], data["to_shards"], data["opened"]) == ("runs-b.", 3, False)


def test_each_step_is_told_once_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    tell = _Plain()
    for done in range(3):
        tell("fill", done, 3_000)
    tell("prove", 0, None)
    assert capsys.readouterr().err == "writing rows: 3,000…\nproving…\n"
