"""All shards of a recording, in one process or in several."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ReplayOptions, ShardOutcome, replay_shard, replay_shards
from streams.audit.replay.deployment import _Ending, _Worker
from streams.core.version import VERSION
from streams.errors import ExportDamaged, FairstreamError
from tests.checkpointed import ends_of_steps, take, take_forged
from tests.unit.audit.replay.played import SHARD, entries, recorded
from tests.unit.audit.verify.tampering import altered, mended

ALL = ReplayOptions()


def timeless(outcomes: list[ShardOutcome]) -> list[ShardOutcome]:
    return [replace(each, seconds=0.0) for each in outcomes]


def unheard(_outcome: ShardOutcome) -> None:
    pass


def test_what_comes_of_a_shard() -> None:
    recording, told = recorded(), list[ShardOutcome]()
    outcome = replay_shard(recording, SHARD, ALL, lambda each: told.append(replace(each)))
    its = entries(recording)
    assert outcome.equal
    assert (outcome.after, outcome.steps) == (0, len(its))
    assert outcome.decisions == sum(len(each.decisions) for each in its)
    assert (outcome.first_ms, outcome.last_ms, outcome.state) == (its[0].now_ms, its[-1].now_ms, its[-1].state)
    assert told[-1] == outcome
    assert told[-1].read == told[-1].offsets > 0
    assert told == sorted(told, key=lambda each: each.read)


def test_several_processes_find_what_one_finds() -> None:
    forged = mended(altered(recorded(), "journal", 1, 9, lambda step: step.update(state="0")), 1)
    told: dict[int, ShardOutcome] = {}
    several = replay_shards(forged, (0, 1), ALL, jobs=2, tell=lambda each: told.update({each.shard: each}))
    one = replay_shards(forged, (0, 1), ALL, jobs=1, tell=unheard)
    assert timeless(several) == timeless(one)
    assert timeless([told[0], told[1]]) == timeless(one)
    assert one[0].equal
    assert one[1].divergence is not None
    assert (one[1].steps, one[1].divergence.step) == (9, 10)


class Damaged(MemoryRecording):
    """It cannot be read."""

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        raise ExportDamaged(f"in process {os.getpid()}: {topic} {partition}, {start} to {stop}")


def test_a_recording_that_cannot_be_read_fails_all_of_it() -> None:
    damaged = Damaged(shards=2, topics=recorded().topics)
    with pytest.raises(ExportDamaged, match=r"in process \d+: ") as failed:
        replay_shards(damaged, (0, 1), ALL, jobs=2, tell=unheard)
    assert str(os.getpid()) not in str(failed.value)


class Deadly(MemoryRecording):
    """Whoever reads it is ended, as by a system that has no memory left."""

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().read(topic, partition, start, stop)


def test_a_process_that_was_killed_is_told_of() -> None:
    with pytest.raises(FairstreamError, match="--jobs"):
        replay_shards(Deadly(shards=2, topics=recorded().topics), (0, 1), ALL, jobs=2, tell=unheard)


def test_what_cannot_be_replayed_is_said_beside_what_can() -> None:
    recording = altered(recorded(), "journal", 0, 30, lambda step: step.update(core=VERSION + 1))
    newer, plain = replay_shards(mended(recording, 0), (0, 1), ALL, jobs=1, tell=unheard)
    assert newer.refused is not None
    assert f"version {VERSION + 1} of the core" in newer.refused
    assert (newer.steps, newer.divergence, newer.equal) == (30, None, False)
    assert plain.equal


def with_checkpoints(*steps: int) -> tuple[MemoryRecording, list[int]]:
    """The recording with checkpoints after so many of its steps; and the steps' times."""
    recording = recorded()
    ends = ends_of_steps(recording, SHARD)
    assert len(ends) == len(entries(recording))
    for step in steps:
        recording = take(recording, SHARD, ends[step - 1])
    return recording, [each.now_ms for each in entries(recording)]


@pytest.mark.parametrize(("since_step", "after"), [(50, 40), (40, 40), (39, 20), (20, 20), (3, 0)])
def test_since_begins_at_the_last_checkpoint_before_if_there_is_one(since_step: int, after: int) -> None:
    recording, times = with_checkpoints(20, 40)
    outcome = replay_shard(recording, SHARD, ReplayOptions(since_ms=times[since_step - 1]), unheard)
    assert outcome.equal
    assert outcome.proved
    assert (outcome.after, outcome.after + outcome.steps) == (after, len(times))


def test_from_a_checkpoint_it_begins_with_the_first_whose_inputs_are_all_there() -> None:
    recording, _ = with_checkpoints(20, 40, 60)
    applied = {each.topic: each.last for entry in entries(recording)[:30] for each in entry.inputs}
    rest = {
        (topic, SHARD): [each for each in recording.read(topic, SHARD) if each.offset > applied[topic]]
        for topic in ("requests", "completions")
    }
    without_inputs = recording.replaced(rest)
    refused = replay_shard(without_inputs, SHARD, ALL, unheard)
    assert "--from-checkpoint" in (refused.refused or "")
    outcome = replay_shard(without_inputs, SHARD, ReplayOptions(from_checkpoint=True), unheard)
    assert outcome.equal
    assert outcome.after == 40


def test_without_a_checkpoint_none_is_begun_with() -> None:
    outcome = replay_shard(recorded(), SHARD, ReplayOptions(from_checkpoint=True), unheard)
    assert outcome.refused == "shard 0 has no checkpoint in runs.checkpoints to begin with"


def test_a_forged_checkpoint_is_not_begun_with() -> None:
    recording, times = with_checkpoints(20)
    parts = [*recording.read("checkpoints", SHARD)]
    parts[1] = parts[1]._replace(value=(parts[1].value or b"").replace(b'"agent"', b'"chats"'))
    assert parts[1] != [*recording.read("checkpoints", SHARD)][1]
    forged = recording.replaced({("checkpoints", SHARD): parts})
    outcome = replay_shard(forged, SHARD, ReplayOptions(since_ms=times[-1]), unheard)
    assert outcome.refused is not None
    assert "the checkpoint of shard 0 after step 20" in outcome.refused
    assert outcome.steps == 0


def test_a_checkpoint_that_somebody_made_fit_itself_does_not_fit_the_journal() -> None:
    forged = take_forged(recorded(), SHARD, ends_of_steps(recorded(), SHARD)[19])
    outcome = replay_shard(forged, SHARD, ReplayOptions(from_checkpoint=True), unheard)
    assert "the journal says" in (outcome.refused or "")
    assert outcome.steps == 0


def test_where_the_journal_no_longer_tells_a_checkpoint_is_not_proved() -> None:
    recording, _ = with_checkpoints(20)
    later = recording.replaced({("journal", SHARD): [*recording.read("journal", SHARD)][20:]})
    outcome = replay_shard(later, SHARD, ReplayOptions(from_checkpoint=True), unheard)
    assert outcome.equal
    assert not outcome.proved


def test_a_shard_ends_soon_once_another_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Event()
    ending.set()
    monkeypatch.setattr(_Worker, "_ending", ending, raising=False)
    monkeypatch.setattr(_Worker, "_recording", recorded(), raising=False)
    monkeypatch.setattr(_Worker, "_options", ALL, raising=False)
    with pytest.raises(_Ending):
        _Worker.replay(SHARD)
