"""With what a replay begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from streams.audit.checkpoints import Checkpoint, latest_before
from streams.audit.export import export
from streams.audit.replay import ReplayOptions, ShardReplay, replay_shard
from streams.errors import CheckpointWrong
from tests.checkpointed import ends_of_steps, take
from tests.unit.audit.replay.played import SHARD, entries, recorded


@pytest.fixture
def start() -> Checkpoint:
    """After step 30."""
    recording = take(recorded(), SHARD, ends_of_steps(recorded(), SHARD)[29])
    found = latest_before(recording, SHARD)
    assert found is not None
    return found


def test_steps_that_the_start_knows_of_are_passed_over(start: Checkpoint) -> None:
    """The journal is read from where it ended before the state was: so a step may stand there that the state knows."""
    early = replace(start, foot=msgspec.structs.replace(start.foot, journal_end=0))
    steps = [step.entry.step for step in ShardReplay(recorded(), SHARD, early)]
    assert steps == [each.step for each in entries(recorded())[30:]]


def test_rows_that_contradict_each_other_are_no_start(start: Checkpoint) -> None:
    ring = next(key for key in start.rows if b'"ring"' in key)
    del start.rows[ring]
    with pytest.raises(CheckpointWrong, match=r"the checkpoint of shard 0 after step 30 .*contradict each other"):
        ShardReplay(recorded(), SHARD, start)


def test_the_state_that_an_auditor_kept_is_one(tmp_path: Path) -> None:
    kept = recorded().replaced(
        {("state", SHARD): [*recorded().read("state", SHARD, 0, ends_of_steps(recorded(), 0)[19])]}
    )
    export(kept, tmp_path / "kept", now_ms=0, topics=("state",))
    outcome = replay_shard(recorded(), SHARD, ReplayOptions(kept=tmp_path / "kept"), lambda _: None)
    assert outcome.equal
    assert outcome.after == 20


@pytest.mark.parametrize("from_checkpoint", [True, False])
def test_before_the_first_checkpoint_there_is_only_the_beginning(from_checkpoint: bool) -> None:
    recording = take(recorded(), SHARD, ends_of_steps(recorded(), SHARD)[29])
    options = ReplayOptions(since_ms=0, from_checkpoint=from_checkpoint)
    outcome = replay_shard(recording, SHARD, options, lambda _: None)
    if from_checkpoint:
        assert "has no checkpoint" in (outcome.refused or "")
    else:
        assert outcome.equal
        assert outcome.after == 0
