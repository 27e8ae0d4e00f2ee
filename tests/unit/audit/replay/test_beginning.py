"""With what a replay begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import orjson
import pytest

from streams.audit.checkpoints import Checkpoint, latest_before
from streams.audit.export import export
from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ReplayOptions, ShardReplay, replay_shard
from streams.core import VERSION
from streams.errors import CheckpointWrong
from streams.wire import journal_digest
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


OLD: Final = 20  # steps that another version has decided


def upgraded(core: int | None) -> MemoryRecording:
    """The first steps are of another version of the core; None: of before journal records told one."""
    state, journal = ([*recorded().read(topic, SHARD)] for topic in ("state", "journal"))
    rows = [state.index(each) for each in state if each.key == b'[0,"positions"]']
    digest = ""
    for step, (index, row) in enumerate(zip(range(len(journal)), rows, strict=True), start=1):
        said = orjson.loads(journal[index].value or b"")
        place = orjson.loads(state[row].value or b"")
        if step > OLD or core is not None:
            said |= {"core": VERSION if step > OLD else core, "previous": digest}
        else:
            said = {name: part for name, part in said.items() if name not in {"core", "state", "previous", "policies"}}
        journal[index] = journal[index]._replace(value=orjson.dumps(said))
        if "core" in said:
            digest = journal_digest(journal[index].value or b"")
            place[5:7] = digest, said["core"]
        else:
            place = [2, *place[1:5]]
        state[row] = state[row]._replace(value=orjson.dumps(place))
    return recorded().replaced({("state", SHARD): state, ("journal", SHARD): journal})


def begins_with(recording: MemoryRecording) -> int:
    """The step after which a replay from a checkpoint begins, that comes out as recorded."""
    outcome = replay_shard(recording, SHARD, ReplayOptions(from_checkpoint=True), lambda _: None)
    assert outcome.equal, outcome
    return outcome.after


@pytest.mark.parametrize("core", [None, VERSION + 1])
def test_checkpoints_of_another_version_are_passed_over(core: int | None) -> None:
    """What follows the one that stands between the two, this one has decided."""
    recording = upgraded(core)
    ends = ends_of_steps(recording, SHARD)
    for step in (OLD // 2, OLD + 10, OLD + 20):
        recording = take(recording, SHARD, ends[step - 1])
    assert begins_with(recording) == OLD + 10
    recording = upgraded(core)
    for step in (OLD // 2, OLD, OLD + 10):
        recording = take(recording, SHARD, ends[step - 1])
    assert begins_with(recording) == OLD


def test_where_no_checkpoint_is_of_this_version_it_is_said() -> None:
    recording = take(upgraded(VERSION + 1), SHARD, ends_of_steps(recorded(), SHARD)[OLD // 2])
    outcome = replay_shard(recording, SHARD, ReplayOptions(from_checkpoint=True), lambda _: None)
    assert "has no checkpoint" in (outcome.refused or "")


def test_a_checkpoint_of_the_last_step_is_one() -> None:
    recording = upgraded(None)
    cut = {(topic, SHARD): [*recording.read(topic, SHARD, 0, stop)] for topic, stop in _ends_after(recording, OLD)}
    assert begins_with(take(recording.replaced(cut), SHARD)) == OLD


def _ends_after(recording: MemoryRecording, step: int) -> list[tuple[str, int]]:
    journal: list[Rec] = [*recording.read("journal", SHARD)]
    return [("state", ends_of_steps(recording, SHARD)[step - 1]), ("journal", journal[step - 1].offset + 1)]
