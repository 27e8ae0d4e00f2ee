"""Which records belong together: of a deployment that runs on meanwhile, or of a stretch of time."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from streams.audit.export import ExportedRecording, Window, export
from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ReplayOptions, replay_shards
from streams.rows import POSITIONS, encode_key
from tests.checkpointed import ends_of_steps, take
from tests.unit.audit.replay.played import entries, recorded

SHARDS = (0, 1)

Partitions = dict[tuple[str, int], list[Rec]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "export"


def exported(recording: MemoryRecording, directory: Path, window: Window | None = None) -> ExportedRecording:
    export(recording, directory, now_ms=0, window=window)
    return ExportedRecording(directory)


def steps_of(recording: ExportedRecording, topic: str) -> dict[int, set[int]]:
    """The steps of each shard of which a topic has records."""
    found: dict[int, set[int]] = {shard: set() for shard in SHARDS}
    for partition in range(recording.partitions(topic)):
        for record in recording.read(topic, partition):
            document = orjson.loads(record.value or b"")
            found[document["shard"]].add(document["step"])
    return found


def equal(recording: ExportedRecording, *, from_checkpoint: bool = False) -> list[int]:
    """All of it is replayed; how many steps of each shard."""
    options = ReplayOptions(from_checkpoint=from_checkpoint)
    outcomes = replay_shards(recording, SHARDS, options, jobs=1, tell=lambda _: None)
    assert all(each.equal for each in outcomes), outcomes
    return [each.steps for each in outcomes]


def test_of_a_deployment_that_runs_on_all_topics_end_with_the_same_step(directory: Path) -> None:
    ends = {shard: len(entries(recorded(), shard)) // 2 for shard in SHARDS}
    state = {
        ("state", shard): [*recorded().read("state", shard, 0, ends_of_steps(recorded(), shard)[step - 1])]
        for shard, step in ends.items()
    }
    found = exported(recorded().replaced(state), directory)  # the state is read first, and the others when all is there
    for topic in ("journal", "dispatch", "rejected"):
        steps = steps_of(found, topic)
        assert all(max(steps[shard]) <= ends[shard] for shard in SHARDS), topic
    assert equal(found) == [*ends.values()]


def test_up_to_a_moment(directory: Path) -> None:
    until = entries(recorded())[40].now_ms
    found = exported(recorded(), directory, Window(recorded(), until_ms=until))
    assert found.manifest.until_ms == until
    assert found.partitions("state") == 0  # it is kept as it is now only
    expected = [sum(each.now_ms <= until for each in entries(recorded(), shard)) for shard in SHARDS]
    assert equal(found) == expected
    assert all(max(steps) <= expected[shard] for shard, steps in steps_of(found, "dispatch").items())
    for topic in ("requests", "completions"):
        for shard in SHARDS:
            named = [each.last for entry in entries(recorded(), shard)[: expected[shard]] for each in entry.inputs]
            assert max(each.offset for each in found.read(topic, shard)) in named


def test_from_a_moment_it_begins_at_the_checkpoint_before(directory: Path) -> None:
    recording, begun = recorded(), {0: 40, 1: 15}
    for shard, step in begun.items():
        recording = take(recording, shard, ends_of_steps(recording, shard)[step - 1])
    since = max(entries(recorded(), shard)[step].now_ms for shard, step in begun.items())
    found = exported(recording, directory, Window(recording, since_ms=since))
    for shard, step in begun.items():
        journal = orjson.loads(next(found.read("journal", shard)).value or b"")
        assert step - 1 <= journal["step"] <= step + 1
        assert found.bounds("requests", shard)[0] > 0
    assert equal(found, from_checkpoint=True) == [len(entries(recording, shard)) - begun[shard] for shard in SHARDS]
    refused = replay_shards(found, (0,), ReplayOptions(), jobs=1, tell=lambda _: None)
    assert "--from-checkpoint" in (refused[0].refused or "")


def test_without_a_checkpoint_before_it_is_all_there(directory: Path) -> None:
    found = exported(recorded(), directory, Window(recorded(), since_ms=10**15))
    assert equal(found) == [len(entries(recorded(), shard)) for shard in SHARDS]


def test_checkpoints_after_the_last_step_are_left_out(directory: Path) -> None:
    recording = recorded()
    for step in (10, 40):
        recording = take(recording, 0, ends_of_steps(recording, 0)[step - 1])
    first, until = (entries(recorded())[step - 1].now_ms for step in (10, 30))
    later = [
        each._replace(timestamp=first if each.offset < len(recording.topics["checkpoints", 0]) // 2 else until + 1)
        for each in recording.read("checkpoints", 0)
    ]
    whole = recording.replaced({("checkpoints", 0): later})
    found = exported(whole, directory, Window(whole, until_ms=until))
    assert 0 < len([*found.read("checkpoints", 0)]) < len(later)


def test_what_tells_no_step_is_for_the_auditor_to_see(directory: Path) -> None:
    strange: Partitions = {}
    for topic in ("journal", "dispatch"):
        records = [*recorded().read(topic, 0)]
        strange[topic, 0] = [
            *records,
            Rec(records[-1].offset + 1, 0, b"0", b"no JSON"),
            records[-1]._replace(offset=records[-1].offset + 2, value=b'{"shard":7,"step":1}'),
        ]
    without_state: Partitions = {("state", shard): [] for shard in SHARDS}
    found = exported(recorded().replaced({**strange, **without_state}), directory)
    for place, records in strange.items():
        assert [*found.read(*place)] == records


def test_a_shard_that_has_taken_no_step_has_dispatched_nothing(directory: Path) -> None:
    nothing: Partitions = {(topic, shard): [] for topic in ("journal", "state") for shard in SHARDS}
    found = exported(recorded().replaced(nothing), directory)
    assert [*found.read("dispatch", 0)] == [*found.read("rejected", 1)] == []


def test_a_state_that_is_damaged_is_exported_all_the_same(directory: Path) -> None:
    key = encode_key(0, (POSITIONS,))
    damaged: Partitions = {
        ("state", 0): [
            each._replace(value=b"[99,1]") if each.key == key else each for each in recorded().read("state", 0)
        ]
    }
    found = exported(recorded().replaced(damaged), directory)
    assert [*found.read("state", 0)] == damaged["state", 0]
    for topic in ("journal", "requests", "dispatch"):
        assert [*found.read(topic, 0)] == [*recorded().read(topic, 0)]
