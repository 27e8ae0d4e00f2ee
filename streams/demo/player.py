"""Plays a story: files its runs at their moments and waits until the last one is settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streams import clock
from streams.demo.deployment import REHEARSAL, Deployment
from streams.errors import FairstreamError
from streams.simulate.story import Story
from streams.simulate.workload import Arrival

_TURN_S: Final = 0.1
_WATCH_S: Final = 0.25  # how often whoever watches is told
_PATIENCE_S: Final = 60.0  # without a single settlement; no run of a story takes that long


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How far a story has come, for whoever watches."""

    elapsed_s: float
    filed: int
    started: int
    settled: int
    queued: dict[str, int]  # by tenant, runs filed and not handed out; nobody with 0


def play_story(story: Story, deployment: Deployment, watch: Callable[[Moment], None]) -> int:
    """File every run at its moment, and return when all are settled: the beginning, in ms since the epoch.

    Raises `FairstreamError` if runs are refused or nothing moves any more, and as `Deployment.check` does.
    """
    observer = deployment.observer
    records = observer.records
    settled_before = records.succeeded
    coming = 0
    begin_ms, begin = clock.now_ms(), clock.monotonic()
    moved, moved_at, watched_at = 0, begin, begin
    while True:
        elapsed_s = clock.monotonic() - begin
        while coming < len(story.arrivals) and story.arrivals[coming].at_ms <= elapsed_s * 1_000:
            _file(deployment, story.arrivals[coming])
            coming += 1
        settled = records.succeeded - settled_before
        if settled >= len(story.arrivals) or clock.monotonic() - watched_at >= _WATCH_S:
            watched_at = clock.monotonic()
            watch(_moment(elapsed_s, deployment, settled))
        if settled >= len(story.arrivals):
            return begin_ms
        if settled != moved:
            moved, moved_at = settled, clock.monotonic()
        _check(deployment, settled, clock.monotonic() - moved_at)
        observer.poll(_until_next(story, coming, clock.monotonic() - begin))


def _file(deployment: Deployment, arrival: Arrival) -> None:
    deployment.publisher.submit(
        arrival.tenant, arrival.run_id, arrival.workflow, {"tokens": arrival.tokens}, estimate=arrival.estimate
    )


def _until_next(story: Story, coming: int, elapsed_s: float) -> float:
    if coming == len(story.arrivals):
        return _TURN_S
    return min(_TURN_S, max(0.0, story.arrivals[coming].at_ms / 1_000 - elapsed_s))


def _check(deployment: Deployment, settled: int, still_s: float) -> None:
    deployment.check()
    refused = deployment.observer.records.refused
    if refused:
        raise FairstreamError(f"the scheduler refused {len(refused)} runs, the first: {refused[0]}")
    if still_s > _PATIENCE_S:
        raise FairstreamError(f"nothing was settled for {_PATIENCE_S:g} s, after {settled} runs; see the logs")


def _moment(elapsed_s: float, deployment: Deployment, settled: int) -> Moment:
    records = deployment.observer.records
    filed = Counter(run.tenant for run in records.filed if run.tenant != REHEARSAL)
    handed = Counter(run.tenant for run in records.handed if run.tenant != REHEARSAL)
    return Moment(
        elapsed_s=elapsed_s,
        filed=filed.total(),
        started=handed.total(),
        settled=settled,
        queued=dict(filed - handed),
    )
