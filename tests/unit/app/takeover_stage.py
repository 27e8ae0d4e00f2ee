"""A fleet of shard tasks without threads, in a group that a test plays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from faust.types import TP

from streams import clock
from streams.app.faust_overrides import Fetched
from streams.app.inbox import Inbox
from streams.app.shard_task import Listener, Offsets, ShardTask
from streams.app.takeover import Fleet
from streams.app.unserved import Unserved
from streams.errors import (
    OwnershipLost,
)
from tests.unit.app.fakes import NAMES, FakeRecord

TOPICS = (NAMES.requests, NAMES.completions, NAMES.state)


class FakeTask:
    """A shard task without a thread: the test says when it opens, confirms and ends."""

    def __init__(self, shard: int, takeover: int, listener: Listener) -> None:
        self.shard = shard
        self.listener = listener
        self.inbox = Inbox(2, 1 << 40, lambda: listener.on_room(shard))
        self.inbox.reset(takeover)
        self.opened: Future[Offsets] = Future()
        self.pause_s = 0.0
        self.started = False
        self.closed = False
        self.gave_up = False
        self.stubborn = False  # does not end when told to
        self.confirmed: list[int] = []
        self.lost = False
        self.fenced = False
        self.busy_s = 0.0
        self.doing = "is being loaded"

    def start(self) -> None:
        self.started = True
        self.fenced = True
        self.opened.set_result({"requests": 10 * self.shard + 9})

    def confirm(self, takeover: int) -> Future[Offsets]:
        self.confirmed.append(takeover)
        self.inbox.reset(takeover)
        answer: Future[Offsets] = Future()
        if self.lost:
            answer.set_exception(OwnershipLost("gone"))
        else:
            answer.set_result({"requests": 10 * self.shard + 9, "completions": 4})
        return answer

    def close(self) -> None:
        self.closed = True

    def give_up(self) -> None:
        self.gave_up = True

    def join(self, timeout: float) -> None:
        pass

    def is_alive(self) -> bool:
        return self.stubborn and not self.gave_up

    def end(self, failure: BaseException | None) -> None:
        self.listener.on_end(self, failure)  # type: ignore[arg-type]


class Stage:
    """A fleet of fake tasks in a fake group, which gives the same assignment again when it is asked."""

    def __init__(self, task: type[FakeTask] = FakeTask) -> None:
        self.tasks: list[FakeTask] = []
        self.failures: list[BaseException] = []
        self.paused: set[TP] = set()
        self.asked = 0
        self.checked: list[int] = []
        self.unreadable: Exception | None = None  # what a check of a refused shard finds
        self.kind = task

        def make(shard: int, takeover: int, listener: Listener) -> ShardTask:
            self.tasks.append(self.kind(shard, takeover, listener))
            return self.tasks[-1]  # type: ignore[return-value]

        unserved = Unserved(lost_grace_s=0.05, refused_retry_s=0.01)
        self.fleet = Fleet(NAMES, make, self.check, pause_s=0.01, unserved=unserved, on_failure=self.failures.append)
        self.fleet.attach(self)

    def rejoin(self) -> None:
        self.asked += 1

    def pause(self, partitions: Iterable[TP]) -> None:
        self.paused.update(partitions)

    def check(self, shard: int) -> None:
        self.checked.append(shard)
        if self.unreadable is not None:
            raise self.unreadable

    async def serve(self, *shards: int, rejoins: int) -> None:
        """Do as the group does: hand out the assignment, and again each time that it is asked."""
        for number in range(1, rejoins + 2):
            await self.fleet.take(assignment(*shards), number)
            if number <= rejoins:
                await settle(lambda: self.asked == number)  # noqa: B023

    def live(self) -> dict[int, FakeTask]:
        return {task.shard: task for task in self.tasks if not task.closed}


def assignment(*shards: int) -> frozenset[TP]:
    return frozenset(TP(topic, shard) for topic in TOPICS for shard in shards)


def is_ready(stage: Stage) -> bool:
    return stage.fleet.ready  # a call: mypy takes what an attribute was found to be for what it will be


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


async def settle(condition: Callable[[], object]) -> None:
    end = clock.monotonic() + 5
    while not condition():
        assert clock.monotonic() < end, "it never came about"
        await asyncio.sleep(0.001)


class Message:
    def __init__(self, topic: str, partition: int, takeover: int, records: list[FakeRecord]) -> None:
        self.topic = topic
        self.partition = partition
        self.value = Fetched(records, takeover)


class Event:
    def __init__(self, message: Message, acked: list[Event] | None = None) -> None:
        self.message = message
        self._acked = acked if acked is not None else []

    def ack(self) -> None:
        self._acked.append(self)


def batch(offset: int, number: int = 1, takeover: int = 1, shard: int = 0) -> Event:
    return Event(Message(NAMES.requests, shard, takeover, [FakeRecord(offset + n, b"x") for n in range(number)]))
