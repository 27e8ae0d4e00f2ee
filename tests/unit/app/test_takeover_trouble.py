"""Shards that cannot be read, are lost, or fail: what is refused, taken again, and the end of the process."""

from __future__ import annotations

import asyncio

import pytest
from faust.types import TP

from streams.errors import (
    ConfigError,
    DeploymentMoved,
    FairstreamError,
    NotAuthorized,
    OwnershipLost,
    StateUnreadable,
    Unavailable,
)
from tests.unit.app.fakes import NAMES
from tests.unit.app.takeover_stage import (
    FakeTask,
    Stage,
    assignment,
    batch,
    is_ready,
    run,
    settle,
)


class Failing(FakeTask):
    """Cannot be opened."""

    failure: FairstreamError = StateUnreadable("a row is not a row")
    past_fence = True

    def start(self) -> None:
        self.fenced = self.past_fence
        self.opened.set_exception(self.failure)
        self.end(self.failure)


class Fenced(Failing):
    failure = OwnershipLost("somebody was quicker")
    past_fence = False


class Alone(Failing):
    failure = Unavailable("no answer")
    past_fence = False


class Forbidden(Failing):
    failure = ConfigError("not authorized")
    past_fence = False


class Torn(Failing):
    failure = ConfigError("made with 3 partitions")


@pytest.mark.parametrize("kind", [Failing, Torn])
def test_a_shard_that_cannot_be_read_is_refused_and_named_and_the_others_are_served(
    kind: type[FakeTask], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.kind = kind
        stage.unreadable = kind.failure  # type: ignore[attr-defined]
        positions = await stage.fleet.take(assignment(0, 1), 2)
        assert {tp.partition for tp in positions} == {0}
        await settle(lambda: len(stage.checked) > 3)
        assert stage.fleet.shards == [0]
        assert not is_ready(stage)
        assert list(stage.fleet.unserved) == [1]
        assert str(stage.unreadable) in stage.fleet.unserved[1]
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        await stage.fleet.deliver(batch(0, shard=1))  # what was fetched before the pause is dropped
        assert (stage.asked, stage.failures) == (0, [])  # the group is not disturbed for what is as it was

    run(scenario)
    assert [record.levelname for record in caplog.records if "shard_refused" in record.message] == ["ERROR"]


def test_a_shard_that_has_been_repaired_is_taken_without_a_restart() -> None:
    async def scenario() -> None:
        stage = Stage(Failing)
        stage.unreadable = StateUnreadable("a row is not a row")
        await stage.fleet.take(assignment(0), 1)
        await settle(lambda: stage.checked)
        stage.unreadable = None
        await settle(lambda: stage.asked)
        assert not is_ready(stage)
        stage.kind = FakeTask
        await stage.fleet.take(assignment(0), 2)
        assert stage.fleet.ready
        assert stage.fleet.unserved == {}

    run(scenario)


@pytest.mark.parametrize("found", [DeploymentMoved("elsewhere"), NotAuthorized("not yours"), RuntimeError("a bug")])
def test_a_look_at_a_refused_shard_that_finds_what_no_other_look_mends_ends_the_process(found: Exception) -> None:
    """A look that ended by an error of its own was the last: the shard was never tried again."""

    async def scenario() -> None:
        stage = Stage(Failing)
        stage.unreadable = found
        await stage.fleet.take(assignment(0), 1)
        await settle(lambda: stage.failures)
        assert stage.failures == [found]

    run(scenario)


def test_a_fence_that_is_not_allowed_ends_the_process_with_its_own_words() -> None:
    async def scenario() -> None:
        stage = Stage(Forbidden)
        assert await stage.fleet.take(assignment(0), 1) == {}
        await settle(lambda: stage.failures)
        assert str(stage.failures[0]) == "not authorized"

    run(scenario)


def test_a_shard_is_waited_for_as_long_as_kafka_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        stage = Stage(Alone)
        await stage.serve(0, rejoins=4)
        await settle(lambda: stage.fleet.unserved)
        assert stage.failures == []
        stage.kind = FakeTask
        await stage.fleet.take(assignment(0), 6)
        assert stage.fleet.ready

    monkeypatch.setattr("streams.app.unserved._FIRST_WAIT_S", 0.001)
    run(scenario)
    assert (
        sum("shard_waiting" in record.message for record in caplog.records) == 1
    )  # a line for the outage, not the try


def test_a_shard_that_is_lost_while_the_group_gives_it_to_us_is_taken_again() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.asked)
        assert stage.fleet.shards == [1]
        assert not is_ready(stage)
        assert [task.shard for task in stage.tasks] == [0, 1]  # not before the group has answered
        await stage.fleet.take(assignment(0, 1), 2)
        assert stage.fleet.ready
        assert [task.shard for task in stage.tasks] == [0, 1, 0]
        assert stage.failures == []

    run(scenario)


def test_a_shard_that_is_lost_over_and_over_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(Fenced)
        serving = asyncio.ensure_future(stage.serve(0, rejoins=99))
        await settle(lambda: stage.failures)
        serving.cancel()
        assert isinstance(stage.failures[0], OwnershipLost)
        assert "same transactional id" in str(stage.failures[0])
        assert len(stage.tasks) > 2

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.005)
    run(scenario)


def test_a_lost_shard_is_forgiven_once_the_group_has_decided_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.fleet.shards == [1])
        await stage.fleet.take(assignment(1), 2)
        assert stage.fleet.ready
        await asyncio.sleep(0.1)
        assert (stage.asked, stage.failures) == (0, [])

    run(scenario)


def test_a_group_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].end(OwnershipLost("fenced"))
        await settle(lambda: stage.asked > 2)
        await stage.fleet.release()
        asked = stage.asked
        await asyncio.sleep(0.02)
        assert stage.asked == asked

    monkeypatch.setattr("streams.app.unserved._FIRST_LOST_S", 0.001)
    monkeypatch.setattr("streams.app.retaking._ASK_AGAIN_S", 0.001)
    run(scenario)


def test_a_shard_whose_input_is_not_where_it_was_is_loaded_anew() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.fleet.misplaced(TP(NAMES.requests, 1), 10)
        assert stage.tasks[1].closed
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        assert (stage.asked, stage.fleet.ready, stage.fleet.shards) == (1, False, [0])
        stage.tasks[1].end(None)
        await stage.fleet.take(assignment(0, 1), 2)
        assert [task.shard for task in stage.tasks] == [0, 1, 1]
        assert stage.tasks[0].confirmed == [2]
        assert stage.fleet.ready

    run(scenario)


def test_a_shard_whose_input_is_damaged_is_refused_by_name_and_tried_again_later() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        for _ in range(2):
            stage.fleet.damaged(TP(NAMES.requests, 1), "a batch whose checksum is wrong")
        assert stage.tasks[1].closed
        assert stage.paused == {TP(NAMES.requests, 1), TP(NAMES.completions, 1)}
        assert stage.fleet.shards == [0]
        why = stage.fleet.unserved[1]
        assert why.startswith("refused: runs.requests, partition 1")
        assert why.endswith("a batch whose checksum is wrong")
        assert stage.asked == 0

    run(scenario)


@pytest.mark.parametrize("failure", [FairstreamError("unknown"), RuntimeError("a bug"), None])
def test_any_other_end_of_a_shard_is_the_end_of_the_process(failure: BaseException | None) -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        stage.tasks[0].end(failure)
        await settle(lambda: stage.failures)
        assert failure is None or stage.failures == [failure]

    run(scenario)
