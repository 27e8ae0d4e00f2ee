"""Which shards this process serves: each assignment of the group is made true, once, before records flow.

For each assigned shard: fence the former owner, load the rows, say where the inputs go on. A shard that stays is kept,
if its own producer can still commit. Everything of a shard happens in its thread, all shards at once; here they are
started, asked, closed, and missed when they end by themselves.

A shard that ended while the group still gives it to us is taken again, and the others go on (`unserved` says when).
Two members that start at the same moment need that: the fence for an assignment that has just been replaced may come
after the new owner's, who then loses a shard that nobody else will serve.

Why no zombie takes a shard that the group gave to others. Only `take` fences, once for each assignment that the group's
coordinator sent; to take a shard again is to join the group again, and wait for its answer. A process that was frozen
past its session loses its shards (its first write says so), asks, and is told that it is no member; it then joins as a
new one and gets what the group decides now. What it believed before it woke makes it fence nothing. One thing is
left: it freezes between the coordinator's answer and its fence, and so takes a shard from the present owner. That one
is a member still, asks, and fences it in turn; each answer of the coordinator's is used for one fence, so this ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from faust.types import TP

from streams import clock
from streams.app import collector
from streams.app.inbox import Batch, size_of
from streams.app.retaking import Group, Retaking
from streams.app.shard_task import Listener, Offsets, ShardTask
from streams.app.unserved import Trouble, Unserved, trouble_of
from streams.errors import ConfigError, FairstreamError, OwnershipLost, StateUnreadable
from streams.intake import Source
from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.takeover")

_STEP_GRACE_S: Final = 2.0  # for the step under way, when a shard is closed; after it Kafka is not waited for
_END_GRACE_S: Final = 1.5  # a blocked call looks up once a second
_CROWDED: Final = 4  # shards; with more in one process each pauses longer, or small transactions eat the broker

MakeTask = Callable[[int, int, Listener], ShardTask]  # shard, takeover


class Fleet:
    """The shards of this process. For the event loop; `Listener`'s calls come from the threads."""

    def __init__(
        self,
        names: TopicNames,
        make_task: MakeTask,
        check: Callable[[int], object],
        *,
        pause_s: float,
        unserved: Unserved,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`check` raises if a shard's rows cannot be loaded: see `Retaking`.

        `on_failure` ends the process: a shard failed in a way that no other try can mend.
        """
        self._sources: Final = {names.requests: Source.REQUESTS, names.completions: Source.COMPLETIONS}
        self._state_topic: Final = names.state
        self._make_task: Final = make_task
        self._pause_s: Final = pause_s
        self._retaking: Final = Retaking(unserved, check, on_hopeless=on_failure)
        self._on_failure: Final = on_failure
        self._tasks: dict[int, ShardTask] = {}
        self._open: set[int] = set()  # of the tasks, those that serve
        self._wanted: set[int] = set()
        self._room: Final[dict[int, asyncio.Event]] = {}
        self._takeover = 0
        self._taken = False
        self._closing = False
        self._loop: asyncio.AbstractEventLoop

    def attach(self, group: Group) -> None:
        """Say which group the shards come from. Before the first takeover."""
        self._retaking.group = group

    # --- the takeover (`faust_overrides.Handover`)

    async def take(self, assigned: frozenset[TP], takeover: int) -> Mapping[TP, int]:
        """Serve exactly what is assigned, and return the next offset of each input partition.

        Ends only when every shard is open or gone, whatever the group decides meanwhile: a fence can't be called
        back, and one that came after a later one would take the shard from ourselves.
        """
        self._loop = asyncio.get_running_loop()
        self._taken = False
        self._takeover = takeover
        begun = clock.monotonic()
        wanted, torn = self._shards_of(assigned)
        self._wanted = wanted | set(torn)
        self._retaking.takeover(takeover, self._wanted)
        gone = [task for shard, task in self._tasks.items() if shard not in wanted]
        closing = asyncio.ensure_future(self._close(gone))
        positions: dict[TP, int] = {}
        for offsets in await asyncio.gather(*(self._own(shard) for shard in sorted(wanted))):
            positions.update(offsets)
        for shard, failure in torn.items():
            self._retaking.begin(shard, Trouble.REFUSED, failure)
        await closing
        await asyncio.to_thread(collector.sweep)
        crowd = max(1.0, len(self._tasks) / _CROWDED)
        for task in self._tasks.values():
            task.pause_s = self._pause_s * crowd
        self._taken = True
        _LOG.info(
            "streams.app.takeover number=%d shards=%s closed=%s seconds=%.2f",
            takeover,
            sorted(self._open),
            sorted(task.shard for task in gone),
            clock.monotonic() - begun,
        )
        return positions

    def misplaced(self, tp: TP, offset: int) -> None:
        """Load a shard anew whose input has nothing at its position: the loader tells what that means."""
        _LOG.warning("streams.app.input_out_of_range topic=%s partition=%d offset=%d", tp.topic, tp.partition, offset)
        self.doubt([tp.partition])

    def damaged(self, tp: TP, why: str) -> None:
        """Refuse to serve a shard whose input cannot be read, and look again later: there are accepted runs in it."""
        task = self._tasks.get(tp.partition)
        if task is not None:
            self._set_aside(task)
            task.close()
            failure = StateUnreadable(f"{tp.topic}, partition {tp.partition}: Kafka gives what it never took, {why}")
            self._retaking.begin(task.shard, Trouble.REFUSED, failure)

    def doubt(self, shards: Iterable[int] | None = None) -> None:
        """Drop shards (None: all), whose memory may not go with the topics any more, and take them anew."""
        dropped = [task for task in self._tasks.values() if shards is None or task.shard in shards]
        for task in dropped:
            self._set_aside(task)
            task.close()  # its end is heard by nobody; if it does not come, the next fence makes it come
        if dropped:
            self._retaking.ask()

    def topics_changed(self) -> None:
        """Take all shards anew: the loader knows what has become of their topics. From any thread."""
        if self._takeover:
            self._post(self.doubt)

    async def release(self) -> None:
        """Close all shards: each ends its step under way, or leaves it to the next owner's fence."""
        self._closing = True
        self._retaking.close()
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
        records, takeover = message.value
        size = sum(map(size_of, records))
        batch = Batch(source, records, takeover, event, size)
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
        """Whether all of the last assignment is being served."""
        return self._taken and not self._retaking.asked and self._open == self._wanted and not self._closing

    @property
    def closing(self) -> bool:
        """Whether nothing is taken any more."""
        return self._closing

    @property
    def shards(self) -> list[int]:
        """The shards served by this process."""
        return sorted(self._open)

    @property
    def unserved(self) -> Mapping[int, str]:
        """Why each shard that was assigned to this process and is not served is not."""
        return self._retaking.reasons

    @property
    def longest_steps(self) -> Mapping[int, float]:
        """For each shard that is in a step, the seconds since it began."""
        return {shard: task.busy_s for shard, task in sorted(self._tasks.items()) if task.busy_s > 0}

    # --- inside

    def _shards_of(self, assigned: frozenset[TP]) -> tuple[set[int], dict[int, ConfigError]]:
        """Return the shards of which all topics were assigned, and why each of the others cannot be served."""
        by_topic: dict[str, set[int]] = {topic: set() for topic in (*self._sources, self._state_topic)}
        for tp in assigned:
            by_topic.setdefault(tp.topic, set()).add(tp.partition)
        whole = set(by_topic[self._state_topic]).intersection(*by_topic.values())
        torn = {}
        for shard in sorted({tp.partition for tp in assigned} - whole):
            missing = ", ".join(topic for topic, shards in by_topic.items() if shard not in shards)
            torn[shard] = ConfigError(
                f"{missing}: there is no partition {shard}, or the group gave it to another process; "
                "create the topics with `fairstream topics`"
            )
        return whole, torn

    async def _own(self, shard: int) -> dict[TP, int]:
        """Keep or open a shard, and return where its inputs go on; nothing if that failed.

        A failure is a task's end, and dealt with as such: see `_missed`.
        """
        kept = self._tasks.get(shard)
        if kept is not None:
            try:
                return self._opened(kept, await asyncio.wrap_future(kept.confirm(self._takeover)))
            except OwnershipLost:
                self._drop(kept)
            except Exception:  # noqa: BLE001 - see above
                return {}
        if self._closing:
            return {}  # a fence now would be one against whoever comes after us
        self._retaking.opening(shard)
        task = self._start(shard)
        try:
            return self._opened(task, await asyncio.wrap_future(task.opened))
        except Exception:  # noqa: BLE001 - see above
            return {}

    def _start(self, shard: int) -> ShardTask:
        self._room[shard] = asyncio.Event()
        listener = Listener(self._on_room, self._on_done, self._on_end)
        task = self._tasks[shard] = self._make_task(shard, self._takeover, listener)
        task.start()
        return task

    def _opened(self, task: ShardTask, applied: Offsets) -> dict[TP, int]:
        shard = task.shard
        if self._tasks.get(shard) is not task:
            return {}  # dropped meanwhile: another takeover follows
        self._open.add(shard)
        self._retaking.served(shard)
        return {TP(topic, shard): applied.get(source.value, -1) + 1 for topic, source in self._sources.items()}

    async def _close(self, tasks: list[ShardTask]) -> None:
        for task in tasks:
            self._drop(task)
            task.close()
        await self._ended(tasks, _STEP_GRACE_S)
        for task in tasks:
            if task.is_alive():
                _LOG.warning("streams.app.shard_abandoned shard=%d: it %s", task.shard, task.doing)
                task.give_up()
        await self._ended(tasks, _END_GRACE_S)

    def _drop(self, task: ShardTask) -> None:
        """Stop serving it; from now on its end is expected."""
        self._tasks.pop(task.shard, None)
        self._open.discard(task.shard)
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
        """Find out whether the end of a task is one that we asked for, and what it means if not."""
        if self._tasks.get(task.shard) is not task:
            return
        self._set_aside(task)
        trouble = trouble_of(failure, fenced=task.fenced)
        if trouble is not None:
            assert isinstance(failure, FairstreamError), "no other error is a trouble"
            self._retaking.begin(task.shard, trouble, failure)
            return
        error = failure or FairstreamError("it ended without being told to")
        trace = None if isinstance(error, FairstreamError) else failure
        _LOG.error("streams.app.shard_failed shard=%d: %s", task.shard, error, exc_info=trace)
        self._on_failure(error)

    def _set_aside(self, task: ShardTask) -> None:
        """Serve it no more, and stop its inputs until a takeover: what is fetched for it would be thrown away."""
        self._drop(task)
        self._retaking.group.pause([TP(topic, task.shard) for topic in self._sources])


def _acknowledge(events: list[Any]) -> None:
    for event in events:
        event.ack()
