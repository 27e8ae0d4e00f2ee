"""`verify` holds every checkpoint against the journal."""

from __future__ import annotations

from streams.audit.checkpoints import TOPIC, feet
from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from tests.checkpointed import ends_of_steps, take
from tests.recorded import record

SHARD = 1


def recorded() -> MemoryRecording:
    recording = record(5, ticks=40)
    for end in ends_of_steps(recording, SHARD)[10:30:10]:
        recording = take(recording, SHARD, end)
    return recording


def test_checkpoints_that_nobody_touched_are_what_they_were() -> None:
    report = verify(recorded())
    assert report.problems == []
    assert report.looked_at["checkpoints"] == 2
    assert report.looked_at.get("checkpoints that the journal says nothing of", 0) == 0


def test_one_that_was_altered_is_found_at_its_place() -> None:
    recording = recorded()
    (offset, foot), _ = feet(recording, SHARD)
    there = [*recording.read(TOPIC, SHARD)]
    value = there[offset - 1].value or b""
    there[offset - 1] = there[offset - 1]._replace(value=value[:-1] + bytes([value[-1] ^ 1]))
    report = verify(recording.replaced({(TOPIC, SHARD): there}))
    (problem,) = report.problems
    assert (problem.check, problem.shard, problem.step) == ("checkpoints", SHARD, foot.step)
    assert (problem.topic, problem.offset) == (TOPIC, offset)
    assert "its foot says 1 chunks" in problem.sentence
