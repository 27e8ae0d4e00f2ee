"""The benchmark of the journal runs, and shows what it measured. What the figures are is no affair of a test."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streams.bench.journal import RUNS_A_STEP, JournalOptions, hash_bytes, measure_journal, run_journal
from streams.bench.steps import Steps

SMALL = JournalOptions(runs=20, rounds=2, tenants=30)


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Give the garbage collector back as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.parametrize("runs", [1, 16, 100])
def test_each_step_ends_what_is_in_flight_and_fills_the_window_again(runs: int) -> None:
    steps = Steps(30, runs)
    for _ in range(2):
        spent = steps.take(3 * runs)
        assert spent.runs == 3 * runs
        assert 0 < spent.state_s < spent.whole_s
        assert 0 < spent.record_s < spent.whole_s
        assert 50 < spent.journal_bytes / spent.runs < spent.other_bytes / spent.runs


def test_steps_of_every_size_are_measured() -> None:
    costs = measure_journal(SMALL)
    assert [each.runs_a_step for each in costs] == list(RUNS_A_STEP)
    for each in costs:
        assert 0 < each.state_us + each.record_us < each.step_us
        assert 0 < each.share < 1
    assert costs[0].journal_bytes > costs[-1].journal_bytes, "a large step has one record for all of its runs"


def test_what_the_hash_keeps_of_a_run_is_little() -> None:
    """What orjson returns would keep 4 KB of its buffer in memory."""
    assert 100 < hash_bytes(20_000) < 300


def test_the_report_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_journal(SMALL) == 0
    said = capsys.readouterr().out
    assert "both of the step" in said
    assert "bytes a queued run for the state's hash" in said
    assert run_journal(replace(SMALL, json=True)) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"]["tenants"] == 30
    assert [each["runs_a_step"] for each in report["steps"]] == list(RUNS_A_STEP)
    assert set(report) == {"options", "python", "compiled", "steps", "hash_bytes_a_run"}
