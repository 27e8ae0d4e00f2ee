from __future__ import annotations

from queue import SimpleQueue

import pytest

from streams.client.attempts import Attempts
from streams.client.heartbeats import Heartbeats, beat_interval_s
from streams.client.run import Run
from streams.client.verdicts import DEADLINE
from tests.unit.client.fakes import WAIT_S, make_assignment


class Heard:
    """What the heartbeats did."""

    def __init__(self) -> None:
        self.attempts = Attempts(10)
        self.beats: list[str] = []
        self.abandoned: list[tuple[str, str]] = []
        self.heartbeats = Heartbeats(
            self.attempts, beat=lambda run: self.beats.append(run.run_id), abandon=self._abandon, died=self._died
        )

    def add(self, run_id: str, *, lease_ms: int = 3_000, deadline_ms: int | None = None) -> Run:
        run = Run(make_assignment(run_id, lease_ms=lease_ms, deadline_ms=deadline_ms))
        run.beat_at = beat_interval_s(run)
        assert self.attempts.add(run)
        return run

    def _abandon(self, run: Run, why: str) -> None:
        run.abandon(why)
        self.abandoned.append((run.run_id, why))

    def _died(self, error: BaseException) -> None:
        raise AssertionError from error


def test_a_beat_comes_every_third_of_the_lease() -> None:
    heard = Heard()
    heard.add("short", lease_ms=3_000)
    heard.add("long", lease_ms=9_000)
    beats_at: dict[str, list[float]] = {"short": [], "long": []}
    for tenth in range(91):
        heard.beats.clear()
        heard.heartbeats.round(tenth / 10, 0)
        for run_id in heard.beats:
            beats_at[run_id].append(tenth / 10)
    assert beats_at == {"short": [float(n) for n in range(1, 10)], "long": [3.0, 6.0, 9.0]}


def test_a_run_that_has_ended_beats_no_more() -> None:
    heard = Heard()
    run = heard.add("r1")
    heard.attempts.end(run)
    heard.heartbeats.round(100, 0)
    assert heard.beats == []


@pytest.mark.parametrize(("now_ms", "abandoned"), [(499, []), (500, [("r1", DEADLINE)]), (9_999, [("r1", DEADLINE)])])
def test_a_passed_deadline_is_noticed_once(now_ms: int, abandoned: list[tuple[str, str]]) -> None:
    heard = Heard()
    heard.add("r1", deadline_ms=500)
    heard.add("r2")
    for _ in range(3):
        heard.heartbeats.round(0, now_ms)
    assert heard.abandoned == abandoned


def test_a_run_past_its_deadline_still_beats_until_it_ends() -> None:
    heard = Heard()
    heard.add("r1", deadline_ms=1)
    heard.heartbeats.round(1, 2)
    assert heard.beats == ["r1"]


def test_the_death_of_the_thread_is_told() -> None:
    attempts = Attempts(1)
    attempts.add(Run(make_assignment()))
    deaths: SimpleQueue[BaseException] = SimpleQueue()

    def fail(_: Run) -> None:
        raise OSError("no")

    heartbeats = Heartbeats(attempts, beat=fail, abandon=lambda *_: None, died=deaths.put)
    heartbeats.start()
    assert isinstance(deaths.get(timeout=WAIT_S), OSError)
    heartbeats.stop()


def test_the_thread_beats_by_itself() -> None:
    attempts = Attempts(1)
    attempts.add(Run(make_assignment(lease_ms=300)))
    beats: SimpleQueue[str] = SimpleQueue()
    heartbeats = Heartbeats(attempts, beat=lambda run: beats.put(run.run_id), abandon=lambda *_: None, died=deaths_fail)
    heartbeats.start()
    assert [beats.get(timeout=WAIT_S) for _ in range(3)] == ["r1"] * 3
    heartbeats.stop()


def deaths_fail(error: BaseException) -> None:
    raise AssertionError from error
