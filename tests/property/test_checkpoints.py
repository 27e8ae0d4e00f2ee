"""A replay that begins with a checkpoint is the end of the one that begins at the beginning."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.audit.checkpoints import Checkpoint, latest_before, prove
from streams.audit.recording import MemoryRecording
from streams.audit.replay import ReplayedStep, ShardReplay
from streams.errors import NotReplayable
from streams.intake import Source
from tests.checkpointed import ends_of_steps, take
from tests.recorded import record

SHARD: Final = 0

Told = tuple[object, ...]


def told(step: ReplayedStep) -> Told:
    """Everything that came of a step."""
    effects = step.effects
    decided = (effects.dispatches, effects.revokes, effects.settlements, effects.rejections, dict(effects.counts))
    return step.entry, list(step.inputs), decided, step.core.snapshot()


def replayed(recording: MemoryRecording, start: Checkpoint | None = None) -> list[Told]:
    """Every step, each with the hash that the journal gives."""
    replay = ShardReplay(recording, SHARD, start)
    found = [told(step) for step in replay]
    assert replay.divergence is None
    return found


def forgetting(recording: MemoryRecording, start: Checkpoint) -> MemoryRecording:
    """What retention leaves, if it has deleted everything that the checkpoint stands for."""
    applied = start.positions.applied if start.positions is not None else {}
    left = {
        (source.value, SHARD): [*recording.read(source.value, SHARD, applied.get(source.value, -1) + 1)]
        for source in Source
    }
    journal = [*recording.read("journal", SHARD, start.foot.journal_end)]
    return recording.replaced({**left, ("journal", SHARD): journal, ("policy", 0): []})


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000), part=st.floats(0, 1))
def test_from_a_checkpoint_on_every_step_is_the_same(seed: int, part: float) -> None:
    recording = record(seed, ticks=40, drain=False)
    ends = ends_of_steps(recording, SHARD)
    recording = take(recording, SHARD, ends[int(part * (len(ends) - 1))])
    start = latest_before(recording, SHARD)
    assert start is not None
    assert prove(recording, start)
    whole = replayed(recording)
    rest = replayed(recording, start)
    assert len(rest) == len(whole) - start.step
    assert rest == whole[start.step :]
    assert replayed(forgetting(recording, start), start) == rest, "though all before is deleted"


def test_without_its_inputs_only_a_checkpoint_helps() -> None:
    recording = record(3, ticks=40)
    ends = ends_of_steps(recording, SHARD)
    recording = take(recording, SHARD, ends[len(ends) // 2])
    start = latest_before(recording, SHARD)
    assert start is not None
    left = forgetting(recording, start)
    with pytest.raises(NotReplayable):
        replayed(left)
    assert replayed(left, start)


def test_a_checkpoint_of_other_rows_does_not_lead_to_the_same_steps() -> None:
    """The comparison can fail."""
    recording = record(3, ticks=40)
    ends = ends_of_steps(recording, SHARD)
    early, late = (latest_before(take(recording, SHARD, end), SHARD) for end in (ends[5], ends[6]))
    assert early is not None
    assert late is not None
    mixed = Checkpoint(late.foot, late.offset, late.positions, early.rows)
    replay = ShardReplay(recording, SHARD, mixed)
    with pytest.raises(AssertionError):
        assert [told(step) for step in replay] == replayed(recording)[late.step :]
    assert replay.divergence is not None
