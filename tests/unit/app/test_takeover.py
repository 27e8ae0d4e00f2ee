"""Takeovers: what is opened, kept, freed and released."""

from __future__ import annotations

import asyncio

import pytest
from faust.types import TP

from streams.errors import (
    OwnershipLost,
)
from tests.unit.app.fakes import NAMES
from tests.unit.app.takeover_stage import (
    FakeTask,
    Stage,
    assignment,
    is_ready,
    run,
    settle,
)


def test_every_assigned_shard_is_opened_and_its_inputs_go_on_after_what_was_applied() -> None:
    async def scenario() -> None:
        stage = Stage()
        positions = await stage.fleet.take(assignment(0, 2), 7)
        assert positions == {
            TP(NAMES.requests, 0): 10,
            TP(NAMES.completions, 0): 0,
            TP(NAMES.requests, 2): 30,
            TP(NAMES.completions, 2): 0,
        }
        assert stage.fleet.shards == [0, 2]
        assert stage.fleet.ready

    run(scenario)


def test_an_empty_assignment_is_served_too() -> None:
    async def scenario() -> None:
        stage = Stage()
        assert await stage.fleet.take(frozenset(), 1) == {}
        assert stage.fleet.ready

    run(scenario)


def test_a_shard_that_stays_is_confirmed_and_one_that_goes_is_closed() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        zero, one = stage.tasks
        positions = await stage.fleet.take(assignment(1, 2), 2)
        assert zero.closed
        assert not one.closed
        assert one.confirmed == [2]
        assert len(stage.tasks) == 3
        assert positions[TP(NAMES.completions, 1)] == 5
        assert stage.fleet.shards == [1, 2]

    run(scenario)


class Slow(FakeTask):
    """Opens when it is told to."""

    def start(self) -> None:
        self.fenced = True

    def open(self) -> None:
        self.opened.set_result({})


def test_a_shard_that_was_lost_meanwhile_is_not_asked_for_while_it_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].lost = True
        stage.kind = Slow
        taking = asyncio.ensure_future(stage.fleet.take(assignment(0), 2))
        await asyncio.sleep(0)
        stage.tasks[0].end(OwnershipLost("gone"))  # heard before the takeover hears that it cannot be confirmed
        await settle(lambda: len(stage.tasks) == 2)
        await asyncio.sleep(0.05)
        assert stage.asked == 0
        stage.tasks[1].opened.set_result({})
        await taking
        assert is_ready(stage)
        # And if the new one fails, it is asked for.
        stage.tasks[1].end(OwnershipLost("gone again"))
        await settle(lambda: stage.asked)

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.001)
    run(scenario)


def test_a_takeover_frees_what_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is out of all collections: see `collector`."""
    closed: list[list[bool]] = []

    async def scenario() -> None:
        stage = Stage()
        monkeypatch.setattr("streams.app.collector.sweep", lambda: closed.append([task.closed for task in stage.tasks]))
        await stage.fleet.take(assignment(0, 1), 1)
        await stage.fleet.take(assignment(1), 2)

    run(scenario)
    assert closed == [[False, False], [True, False]]


def test_a_shard_that_was_lost_meanwhile_is_opened_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].lost = True
        positions = await stage.fleet.take(assignment(0), 2)
        assert len(stage.tasks) == 2
        assert positions[TP(NAMES.requests, 0)] == 10
        stage.tasks[0].end(OwnershipLost("gone"))  # its end is expected, whenever it is heard of
        await asyncio.sleep(0.1)
        assert stage.failures == []

    run(scenario)


def test_a_shard_of_which_not_all_topics_were_assigned_is_refused() -> None:
    async def scenario() -> None:
        stage = Stage()
        apart = assignment(0, 1) - {TP(NAMES.completions, 1)}
        positions = await stage.fleet.take(apart, 1)
        assert {tp.partition for tp in positions} == {0}
        assert "runs.completions: there is no partition 1" in stage.fleet.unserved[1]
        assert not is_ready(stage)

    run(scenario)


def test_a_shard_that_is_doubted_while_it_is_opened_is_not_served() -> None:
    async def scenario() -> None:
        stage = Stage(Slow)
        taking = asyncio.ensure_future(stage.fleet.take(assignment(0), 1))
        await settle(lambda: stage.tasks)
        stage.fleet.topics_changed()
        await settle(lambda: stage.asked)
        (slow,) = stage.tasks
        assert isinstance(slow, Slow)
        slow.open()
        assert await taking == {}
        assert (stage.fleet.shards, is_ready(stage)) == ([], False)
        stage.kind = FakeTask
        await stage.fleet.take(frozenset(), 2)  # it may go to somebody else just as well
        assert is_ready(stage)

    run(scenario)


def test_topics_may_change_before_there_is_a_takeover() -> None:
    stage = Stage()
    stage.fleet.topics_changed()
    assert stage.asked == 0


def test_releasing_closes_all_and_abandons_what_does_not_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[1].stubborn = True
        await stage.fleet.release()
        assert all(task.closed for task in stage.tasks)
        assert [task.gave_up for task in stage.tasks] == [False, True]
        assert not is_ready(stage)
        stage.tasks[1].end(RuntimeError("torn out of a commit"))
        await asyncio.sleep(0.02)
        assert stage.failures == []  # nobody expected anything else

    monkeypatch.setattr("streams.app.takeover._STEP_GRACE_S", 0.01)
    run(scenario)
    assert "shard_abandoned shard=1: it is being loaded" in caplog.text


def test_many_shards_in_one_process_pause_longer() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(*range(4)), 1)
        assert {task.pause_s for task in stage.tasks} == {0.01}
        await stage.fleet.take(assignment(*range(16)), 2)
        assert {task.pause_s for task in stage.tasks} == {0.04}

    run(scenario)
