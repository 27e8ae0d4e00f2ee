"""Playing a story on a clock that moves only while the player waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.core.effects import Settlement
from streams.core.inputs import SUCCEEDED
from streams.demo import player
from streams.demo.player import Moment, play_story
from streams.demo.records import Filed, Handed, Records
from streams.errors import FairstreamError, StartFailed
from streams.simulate.story import Story

EPOCH_MS = 1_700_000_000_000


class FakeDeployment:
    """Publisher, observer and clock in one: what is filed is settled one second later, if at all."""

    def __init__(self, *, settles: bool = True) -> None:
        self.now_s = 100.0
        self.settles = settles
        self.filed: list[tuple[str, str, float]] = []
        self.records = Records()
        self.failure: Exception | None = None
        self.publisher = self.observer = self

    def submit(self, tenant: str, run_id: str, workflow: str, payload: dict[str, int], *, estimate: int | None) -> None:
        assert payload["tokens"] > 0
        assert estimate is None
        assert workflow
        self.filed.append((tenant, run_id, self.now_s))
        self.records.filed.append(Filed(tenant, run_id, int(self.now_s * 1_000)))

    def poll(self, timeout_s: float) -> None:
        self.now_s += max(timeout_s, 0.000_5)
        while self.settles and len(self.records.settled) < len(self.filed):
            tenant, run_id, at_s = self.filed[len(self.records.settled)]
            if at_s + 1.0 > self.now_s:
                break
            seq = len(self.records.settled) + 1
            self.records.handed.append(Handed(seq, tenant, run_id, 1, 10, int(self.now_s * 1_000)))
            self.records.settled.append(Settlement(tenant, run_id, 1, SUCCEEDED, 10, 10, reported=True))
            self.records.succeeded += 1

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = FakeDeployment()
    clock = SimpleNamespace(now_ms=lambda: EPOCH_MS, monotonic=lambda: fake.now_s)
    monkeypatch.setattr(player, "clock", clock)
    return fake


def test_every_run_is_filed_at_its_moment_and_waited_for(story: Story, deployment: Any) -> None:
    moments: list[Moment] = []
    assert play_story(story, deployment, moments.append) == EPOCH_MS
    assert [(tenant, run_id) for tenant, run_id, _ in deployment.filed] == [a[1:3] for a in story.arrivals]
    late = [at_s - 100.0 - a.at_ms / 1_000 for (*_, at_s), a in zip(deployment.filed, story.arrivals, strict=True)]
    assert min(late) >= 0
    assert max(late) < 0.002
    assert moments[-1].settled == moments[-1].filed == len(story.arrivals)
    assert moments[-1].queued == {}
    assert max(sum(moment.queued.values()) for moment in moments) > 100


def test_what_was_settled_before_does_not_count(story: Story, deployment: Any) -> None:
    deployment.records.succeeded = 8
    moments: list[Moment] = []
    play_story(story, deployment, moments.append)
    assert moments[-1].settled == len(story.arrivals)
    assert deployment.records.succeeded == len(story.arrivals) + 8


def test_a_refusal_ends_the_story(story: Story, deployment: Any) -> None:
    deployment.records.refused.append("tiny/1: queue_full: too many")
    with pytest.raises(FairstreamError, match="refused 1 runs, the first: tiny/1"):
        play_story(story, deployment, lambda _: None)


def test_a_process_that_ends_ends_the_story(story: Story, deployment: Any) -> None:
    deployment.failure = StartFailed("the fleet ended")
    with pytest.raises(StartFailed, match="the fleet ended"):
        play_story(story, deployment, lambda _: None)


def test_standing_still_ends_the_story(story: Story, deployment: Any) -> None:
    deployment.settles = False
    with pytest.raises(FairstreamError, match="nothing was settled for 60 s, after 0 runs"):
        play_story(story, deployment, lambda _: None)
