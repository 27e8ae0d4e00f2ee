"""Schedulers that go on under old rules: nothing in the journal contradicts that, but the policy topic does."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import Any

import pytest

from streams.audit.verify import Report, verify
from tests.recorded import Recorder, policies
from tests.unit.audit.replay.played import entries


class Deaf(Recorder):
    """Its only shard hears of the second policy, and of those after it, so much later; None: never."""

    deaf_ms: int | None = None

    @contextmanager
    def _hearing(self) -> Any:
        stated = self._stated
        heard = [
            each for each in stated[1:] if self.deaf_ms is not None and each.applied_ms + self.deaf_ms < self.now_ms
        ]
        self._stated = [*stated[:1], *heard]
        yield
        self._stated = stated

    def _step(self, shard: int, owner: Any) -> None:
        with self._hearing():
            super()._step(shard, owner)


def serve(deaf_ms: int | None) -> tuple[Deaf, Report]:
    recorder = Deaf(random.Random(5), 1, 6, abort_chance=0.0)
    recorder.deaf_ms = deaf_ms
    recorder.state_policy(policies(6)[0])
    for tick in range(120):
        if tick == 10:
            recorder.state_policy(policies(6)[1])
        recorder.file()
        recorder.now_ms += 1_000
        recorder.tick()
    return recorder, verify(recorder.recording)


@pytest.mark.parametrize("deaf_ms", [0, 40_000])
def test_one_that_is_in_force_in_time(deaf_ms: int) -> None:
    recorder, report = serve(deaf_ms)
    assert entries(recorder.recording, 0)[-1].policy_version == recorder._stated[1].offset
    assert report.problems == []


@pytest.mark.parametrize("deaf_ms", [90_000, None])
def test_one_that_is_in_force_too_late_or_never(deaf_ms: int | None) -> None:
    recorder, report = serve(deaf_ms)
    stated = recorder._stated[1]
    late = next(each.step for each in entries(recorder.recording, 0) if each.now_ms > stated.applied_ms + 60_000)
    assert [(each.check, each.step, each.topic, each.offset) for each in report.problems] == [
        ("policies", late, "policy", stated.offset)
    ]
