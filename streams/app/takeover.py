"""Which shards this process serves: each assignment of the group is made true, once, before records flow.

For each assigned shard: fence the former owner, load the rows, say where the inputs go on. A shard that stays is kept,
if its own producer can still commit. Everything of a shard happens in its thread, all shards at once; here they are
started, asked, closed, and missed when they end by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from faust.types import TP

from streams import clock
from streams.app.inbox import Batch, Source
from streams.app.shard_task import Listener, Offsets, ShardTask
from streams.errors import FairstreamError, OwnershipLost
from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.takeover")

_STEP_GRACE_S: Final = 2.0  # for the step under way, when a shard is closed; after it Kafka is not waited for
_END_GRACE_S: Final = 1.5  # a blocked call looks up once a second
_CROWDED: Final = 4  # shards; with more in one process each pauses longer, or small transactions eat the broker

MakeTask = Callable[[int, int, Listener], ShardTask]  # shard, generation


class Fleet:
    """The shards of this process. For the event loop; `Listener`'s calls come from the threads."""

    def __init__(
        self,
        names: TopicNames,
        make_task: MakeTask,
        *,
        pause_s: float,
        lost_grace_s: float,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_failure` ends the process: a shard failed, or was lost and nobody else was given it."""
        self._sources: Final = {names.requests: Source.REQUESTS, names.completions: Source.COMPLETIONS}
        self._state_topic: Final = names.state
        self._make_task: Final = make_task
        self._pause_s: Final = pause_s
        self._lost_grace_s: Final = lost_grace_s
        self._on_failure: Final = on_failure
        self._tasks: dict[int, ShardTask] = {}
        self._room: Final[dict[int, asyncio.Event]] = {}
        self._generation = 0
        self._ready = False
        self._closing = False
        self._loop: asyncio.AbstractEventLoop

    # --- the takeover (`faust_overrides.Handover`)

    async def take(self, assigned: frozenset[TP], generation: int) -> Mapping[TP, int]:
        """Serve exactly what is assigned, and return the next offset of each input partition.

        Ends only when every shard is open or gone, whatever the group decides meanwhile: a fence can't be called
        back, and one that came after a later one would take the shard from ourselves.
        """
        self._loop = asyncio.get_running_loop()
        self._ready = False
        self._generation = generation
        begun = clock.monotonic()
        wanted = self._shards_of(assigned)
        gone = [task for shard, task in self._tasks.items() if shard not in wanted]
        closing = asyncio.ensure_future(self._close(gone))
        positions: dict[TP, int] = {}
        for offsets in await asyncio.gather(*(self._own(shard) for shard in sorted(wanted))):
            positions.update(offsets)
        await closing
        crowd = max(1.0, len(self._tasks) / _CROWDED)
        for task in self._tasks.values():
            task.pause_s = self._pause_s * crowd
        self._ready = True
        _LOG.info(
            "streams.app.takeover generation=%d shards=%s closed=%s seconds=%.2f",
            generation,
            sorted(self._tasks),
            sorted(task.shard for task in gone),
            clock.monotonic() - begun,
        )
        return positions

    async def release(self) -> None:
        """Close all shards: each ends its step under way, or leaves it to the next owner's fence."""
        self._closing = True
        await self._close(list(self._tasks.values()))

    # --- the records

    async def deliver(self, event: Any) -> None:
        """Hand a batch to its shard. Returns when more may be fetched for it."""
        message = event.message
        task = self._tasks.get(message.partition)
        if task is None:
            return  # lost or closed: whoever takes it over reads the batch again
        source = self._sources[message.topic]
        room = self._room[message.partition]
        records = message.value
        size = sum(record.serialized_value_size for record in records)  # -1 for none, which hurts nobody
        batch = Batch(source, records, message.generation_id, event, size)
        if task.inbox.put(batch) and task.inbox.full:
            room.clear()
            # It may have made room just before the clear.
            if task.inbox.full:
                await room.wait()

    def wake(self) -> None:
        """Make every shard look for something to do. From any thread."""
        for task in list(self._tasks.values()):
            task.inbox.wake()

    @property
    def ready(self) -> bool:
        """Whether the last assignment is being served."""
        return self._ready and not self._closing

    @property
    def shards(self) -> list[int]:
        """The shards served by this process."""
        return sorted(self._tasks)

    # --- inside

    def _shards_of(self, assigned: frozenset[TP]) -> set[int]:
        """Return the assigned shards. All topics of a shard must have come together."""
        by_topic: dict[str, set[int]] = {topic: set() for topic in (*self._sources, self._state_topic)}
        for tp in assigned:
            by_topic.setdefault(tp.topic, set()).add(tp.partition)
        wanted = by_topic[self._state_topic]
        if any(shards != wanted for shards in by_topic.values()):
            raise FairstreamError(f"the group assigned topics apart that belong together: {by_topic}")
        return wanted

    async def _own(self, shard: int) -> dict[TP, int]:
        """Keep or open a shard, and return where its inputs go on; nothing if that failed.

        A failure is a task's end, and dealt with as such: see `_missed`.
        """
        kept = self._tasks.get(shard)
        if kept is not None:
            try:
                return self._next_offsets(shard, await asyncio.wrap_future(kept.confirm(self._generation)))
            except OwnershipLost:
                self._drop(kept)
            except Exception:  # noqa: BLE001 - see above
                return {}
        if self._closing:
            return {}  # a fence now would be one against whoever comes after us
        try:
            return self._next_offsets(shard, await asyncio.wrap_future(self._open(shard).opened))
        except Exception:  # noqa: BLE001 - see above
            return {}

    def _open(self, shard: int) -> ShardTask:
        self._room[shard] = asyncio.Event()
        listener = Listener(self._on_room, self._on_done, self._on_end)
        task = self._tasks[shard] = self._make_task(shard, self._generation, listener)
        task.start()
        return task

    def _next_offsets(self, shard: int, applied: Offsets) -> dict[TP, int]:
        return {TP(topic, shard): applied.get(source.value, -1) + 1 for topic, source in self._sources.items()}

    async def _close(self, tasks: list[ShardTask]) -> None:
        for task in tasks:
            self._drop(task)
            task.close()
        await self._ended(tasks, _STEP_GRACE_S)
        for task in tasks:
            if task.is_alive():
                _LOG.warning("streams.app.shard_abandoned shard=%d: Kafka does not answer", task.shard)
                task.give_up()
        await self._ended(tasks, _END_GRACE_S)

    def _drop(self, task: ShardTask) -> None:
        """Stop serving it; from now on its end is expected."""
        self._tasks.pop(task.shard, None)
        self._room[task.shard].set()

    async def _ended(self, tasks: list[ShardTask], timeout_s: float) -> None:
        deadline = clock.monotonic() + timeout_s
        for task in tasks:
            await asyncio.to_thread(task.join, max(0.0, deadline - clock.monotonic()))

    # --- what the shards' threads report

    def _on_room(self, shard: int) -> None:
        self._post(self._room[shard].set)

    def _on_done(self, events: list[Any]) -> None:
        if events:
            self._post(_acknowledge, events)

    def _on_end(self, task: ShardTask, failure: BaseException | None) -> None:
        self._post(self._missed, task, failure)

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            # An abandoned shard may outlive the loop; then there is nobody left to tell.
            if not self._loop.is_closed():
                raise

    def _missed(self, task: ShardTask, failure: BaseException | None) -> None:
        """Find out whether the end of a task is one that we asked for."""
        if self._tasks.get(task.shard) is not task:
            return
        self._drop(task)
        if isinstance(failure, OwnershipLost):
            _LOG.warning("streams.app.ownership_lost shard=%d: %s", task.shard, failure)
            # The group must have given it to somebody else, and we are about to hear of it.
            self._loop.call_later(self._lost_grace_s, self._check_lost, task.shard, self._generation, failure)
        else:
            error = failure or FairstreamError("it ended without being told to")
            trace = None if isinstance(error, FairstreamError) else failure
            _LOG.error("streams.app.shard_failed shard=%d: %s", task.shard, error, exc_info=trace)
            self._on_failure(error)

    def _check_lost(self, shard: int, generation: int, failure: OwnershipLost) -> None:
        if self._generation == generation and not self._closing:
            self._on_failure(
                OwnershipLost(
                    f"shard {shard} was taken over by a scheduler outside this group, or of another one with the same "
                    f"transactional id; nobody here serves it: {failure}"
                )
            )


def _acknowledge(events: list[Any]) -> None:
    for event in events:
        event.ack()
