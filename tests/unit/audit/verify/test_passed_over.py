"""An owner that passes over requests, and writes a journal that is right in itself: they are still there."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.intake import Source
from tests.recorded import Recorder, policies
from tests.unit.audit.replay.played import diverges


class Passing(Recorder):
    """A new owner of the shard goes on a request or a completion too late, once."""

    topic: Source
    not_before_ms: int = 0
    passed: int | None = None  # its offset

    def _take_over(self, shard: int) -> Any:
        owner = super()._take_over(shard)
        applied = owner.stepper.positions.applied
        follow = [*self.recording.read(self.topic, shard, applied.get(self.topic, -1) + 1)]
        if self.passed is None and len(follow) > 1 and self.now_ms > self.not_before_ms:
            self.passed = follow[0].offset
            applied[self.topic] = self.passed
            owner.read[self.topic] = follow[1].offset
        return owner


@cache
def passing(topic: Source, *, at_once: bool) -> tuple[MemoryRecording, int]:
    """One shard's recording, and the offset that was passed over; at once: by its first owner."""
    recorder = Passing(random.Random(3), 1, 6, abort_chance=0.0)
    recorder.topic = topic
    recorder.not_before_ms = 0 if at_once else recorder.now_ms + 500
    recorder.state_policy(policies(6)[0])
    recorder.file()
    recorder.file()
    for tick in range(60):
        recorder.file()
        if tick % 10 == 9:
            recorder.change_owner()
        recorder.tick()
    assert recorder.passed is not None
    return recorder.recording, recorder.passed


CASES = [(Source.REQUESTS, True), (Source.REQUESTS, False), (Source.COMPLETIONS, False)]


@pytest.mark.parametrize(("topic", "at_once"), CASES)
def test_arithmetic_finds_what_no_step_has_taken_in(topic: Source, at_once: bool) -> None:
    recording, passed = passing(topic, at_once=at_once)
    found = [each for each in verify(recording).problems if each.check == "inputs"]
    assert (topic.value, passed) in [(each.topic, each.offset) for each in found]


@pytest.mark.parametrize(("topic", "at_once"), CASES)
def test_a_replay_stops_there(topic: Source, at_once: bool) -> None:
    recording, passed = passing(topic, at_once=at_once)
    found = diverges(recording, 0)
    assert (found.field, found.replayed) == (f"inputs.{topic.value}", f"from offset {passed} on")
    assert found.step == next(each.step for each in verify(recording).problems if each.check == "inputs")
