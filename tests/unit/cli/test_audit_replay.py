"""`fairstream audit replay` and `export`: what they say, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from streams.audit import kafka_recording
from streams.audit.export import ExportedRecording, export
from streams.audit.recording import MemoryRecording
from streams.cli.tree import app
from streams.core.version import VERSION
from streams.errors import ConfigError
from tests.checkpointed import ends_of_steps, take
from tests.unit.audit.replay.played import entries, recorded
from tests.unit.audit.verify.tampering import altered, dropped, mended


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["audit", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def replay(recording: MemoryRecording, folder: Path, *arguments: object) -> Result:
    export(recording, folder / "export", now_ms=1)
    return run("replay", "--from", folder / "export", "--jobs", 1, *arguments)


def dearer(step: dict[str, Any]) -> None:
    step["decisions"]["estimate"][0] += 1


def test_a_record_that_comes_out_as_it_was(tmp_path: Path) -> None:
    result = replay(recorded(), tmp_path)
    steps = [len(entries(recorded(), shard)) for shard in (0, 1)]
    decisions = [sum(len(each.decisions) for each in entries(recorded(), shard)) for shard in (0, 1)]
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"shard {n}: {steps[n]} steps, {decisions[n]} decisions: EQUAL" for n in (0, 1)]
    assert lines[2].startswith(f"{sum(decisions)} decisions of ")
    assert result.exit_code == 0


def test_one_that_does_not_is_shown_with_both_sides(tmp_path: Path) -> None:
    step = next(each.step for each in entries(recorded(), 1) if each.decisions)
    forged = mended(altered(recorded(), "journal", 1, step - 1, dearer), 1)
    result = replay(forged, tmp_path)
    assert result.exit_code == 1
    estimate = entries(recorded(), 1)[step - 1].decisions[0].estimate
    assert f"DIFFERS in step {step} (journal offset " in result.stdout
    assert "decisions[0].estimate" in result.stdout
    assert f"  recorded  {estimate + 1}\n  replayed  {estimate}\n" in result.stdout
    assert "shard 0: " in result.stdout
    assert run("replay", "--from", tmp_path / "export", "--shard", 0).exit_code == 0


def test_programs_get_it_as_json(tmp_path: Path) -> None:
    step = next(each.step for each in entries(recorded(), 1) if each.decisions)
    result = replay(mended(altered(recorded(), "journal", 1, step - 1, dearer), 1), tmp_path, "--json")
    told = orjson.loads(result.stdout)
    assert not told["equal"]
    assert [each["equal"] for each in told["shards"]] == [True, False]
    assert told["shards"][1]["divergence"]["step"] == step
    assert told["shards"][1]["divergence"]["text"].startswith(f"shard 1, step {step} (journal offset")
    assert told["shards"][0]["divergence"] is None


def test_what_cannot_be_replayed_must_be_corrected_first(tmp_path: Path) -> None:
    newer = mended(altered(recorded(), "journal", 0, 9, lambda step: step.update(core=VERSION + 1)), 0)
    result = replay(newer, tmp_path)
    assert result.exit_code == 2
    assert "shard 0: 9 steps, " in result.stdout
    assert f"NOT REPLAYED: shard 0, step 10: decided by version {VERSION + 1} of the core" in result.stdout


def test_it_begins_with_a_checkpoint_and_ends_at_a_moment(tmp_path: Path) -> None:
    recording = take(recorded(), 0, ends_of_steps(recorded(), 0)[19])
    result = replay(
        recording, tmp_path, "--shard", 0, "--since", "2025-11-24T16:00:10Z", "--until", "2025-11-24T16:00:12Z"
    )
    assert "after the checkpoint of step 20" in result.stdout
    assert result.exit_code == 0
    told = orjson.loads(
        run("replay", "--from", tmp_path / "export", "--until", "2025-11-24T16:00:02Z", "--json").stdout
    )
    assert all(each["last_ms"] <= 1_764_000_002_000 for each in told["shards"])
    assert "until" not in told


def test_a_shard_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"shard: there are 2, from 0 on \(got 2\)"):
        replay(recorded(), tmp_path, "--shard", 2)


def test_an_export_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_recording, "KafkaRecording", lambda _kafka: recorded())
    result = run("export", tmp_path / "out")
    records = {name: len(list(recorded().read(name, 0))) + len(list(recorded().read(name, 1))) for name in ("journal",)}
    assert f"runs.journal            {records['journal']:>14,}\n" in result.stdout
    assert result.stdout.splitlines()[-1].endswith(f"bytes, in {tmp_path / 'out'}")
    assert ExportedRecording(tmp_path / "out").shards == 2
    some = orjson.loads(run("export", tmp_path / "some", "--topics", "journal, policy", "--json").stdout)
    assert some["records"] == {"journal": records["journal"], "policy": len(list(recorded().read("policy", 0)))}
    until = run("export", tmp_path / "until", "--until", "2025-11-24T16:00:02Z", "--since", "2025-11-24T16:00:01Z")
    assert until.exit_code == 0
    manifest = ExportedRecording(tmp_path / "until").manifest
    assert (manifest.since_ms, manifest.until_ms) == (1_764_000_001_000, 1_764_000_002_000)


def test_who_watches_sees_a_bar_for_each_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = replay(recorded(), tmp_path)
    assert "replaying" not in result.stderr
    assert "shard 1" in result.stderr
    assert "decisions/s" in result.stderr
    monkeypatch.setattr(kafka_recording, "KafkaRecording", lambda _kafka: recorded())
    assert "journal" in run("export", tmp_path / "again").stderr


def test_what_a_difference_means_is_said_where_the_sides_do_not(tmp_path: Path) -> None:
    result = replay(mended(dropped(recorded(), "journal", 0, 9), 0), tmp_path)
    assert result.exit_code == 1
    assert ": step\n  records of the journal are missing\n  recorded  11\n  replayed  10\n" in result.stdout


def test_a_time_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="before --since") as refused:
        replay(recorded(), tmp_path, "--since", "2025-11-24T16:00:01Z", "--until", "2025-11-24T16:00:00Z")
    assert refused.value.exit_code == 2
