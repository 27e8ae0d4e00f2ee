"""What was fetched, on its way into the inboxes of the shards and back."""

from __future__ import annotations

import asyncio

from tests.unit.app.fakes import NAMES
from tests.unit.app.takeover_stage import (
    Event,
    Message,
    Stage,
    assignment,
    batch,
    run,
    settle,
)


def test_a_full_inbox_holds_its_own_shard_up_and_nobody_else() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        held = asyncio.ensure_future(stage.fleet.deliver(batch(0, 3)))
        await asyncio.sleep(0.02)
        assert not held.done()
        await stage.fleet.deliver(batch(0, shard=1))
        assert len(stage.tasks[0].inbox.take(9, 99)) == 1
        await held

    run(scenario)


def test_nobody_waits_for_a_shard_that_is_gone() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        held = asyncio.ensure_future(stage.fleet.deliver(batch(0, 3)))
        await asyncio.sleep(0.02)
        await stage.fleet.take(frozenset(), 2)
        await held
        await stage.fleet.deliver(batch(3))  # dropped: its next owner reads it

    run(scenario)


def test_a_batch_of_the_last_takeover_never_follows_a_takeover() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        await stage.fleet.take(assignment(0), 2)
        await stage.fleet.deliver(batch(0, takeover=1))
        await stage.fleet.deliver(batch(5, takeover=2))
        (taken,) = stage.tasks[0].inbox.take(9, 99)
        assert [record.offset for record in taken.records] == [5]

    run(scenario)


def test_events_are_acknowledged_in_order() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0), 1)
        acked: list[Event] = []
        events = [Event(Message(NAMES.requests, 0, 1, []), acked) for _ in range(3)]
        stage.tasks[0].listener.on_done(events)
        await settle(lambda: acked == events)

    run(scenario)


def test_a_wake_reaches_every_shard() -> None:
    async def scenario() -> None:
        stage = Stage()
        await stage.fleet.take(assignment(0, 1), 1)
        stage.fleet.wake()
        for task in stage.tasks:
            task.inbox.wait(60)

    run(scenario)
