"""What the journal's benchmark measures. What the figures are is no affair of a test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from streams.bench.journal import hash_bytes
from streams.bench.steps import Steps


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


def test_what_the_hash_keeps_of_a_run_is_little() -> None:
    """What orjson returns would keep 4 KB of its buffer in memory."""
    assert 100 < hash_bytes(20_000) < 300
