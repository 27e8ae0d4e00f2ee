"""Recovery: what Faust does between an assignment and the first record, handed to our own takeover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from aiokafka.errors import IllegalStateError
from faust.tables import recovery as stock
from faust.types import TP
from mode import Service

from streams.app.faust_overrides.pins import replaces


class Handover(Protocol):
    """Makes this process the owner of what it was assigned."""

    async def take(self, assigned: frozenset[TP], takeover: int) -> Mapping[TP, int]:
        """Return the next offset to read of each input partition that is served; the others stay paused.

        `assigned` holds changelog partitions too. `takeover` counts these calls: what is fetched from the returned
        offsets on carries it, and nothing else does.
        """

    def misplaced(self, tp: TP, offset: int) -> None:
        """Hear that an input has nothing at a position any more; it brings no records until it is taken again."""

    def damaged(self, tp: TP, why: str) -> None:
        """Hear that what an input has next is not what Kafka took; it brings no records until it is taken again."""

    async def release(self) -> None:
        """End all work, for good, before the group is left."""


class HandoverRecovery(stock.Recovery):
    """Waits for assignments and hands each to a `Handover`, then lets the records flow from where that says."""

    def __init__(self, app: Any, tables: Any, handover: Handover, **kwargs: Any) -> None:
        super().__init__(app, tables, **kwargs)
        self._handover: Final = handover
        self._takeovers = 0

    @Service.task
    @replaces(stock.Recovery, "_restart_recovery", "6bd8a8558a2d")
    async def _restart_recovery(self) -> None:
        """Stock replays the changelog into the table, up to an offset at which there may be only a transaction marker.

        It fences nobody, and starts over in the middle of whatever the last generation's recovery was doing. Here a
        takeover, once begun, ends before the next begins: two at once would fence each other's producers.
        """
        while not self.should_stop:
            if await self.wait_for_stopped(self.signal_recovery_start.wait()):
                break
            self.signal_recovery_start.clear()
            generation = self._generation_id
            try:
                self._set_recovery_started()
                assigned = frozenset(self.app.consumer.assignment())
                # Not the group's generation: who joins again may be told the same one, and reads anew all the same.
                self._takeovers += 1
                positions = await self._handover.take(assigned, self._takeovers)
                await self._resume(positions, generation)
            except (stock.RebalanceAgain, IllegalStateError):
                continue  # another assignment is on its way, and signalled
            except stock.ServiceStopped:
                break

    async def _resume(self, positions: Mapping[TP, int], generation: int) -> None:
        """Seek and resume while nothing is fetched or delivered.

        Stock seeks first and then clears the streams, and with them what was fetched in between, which is never
        read again: a plain restart under load lost a record in 4 of 8 tries (faust-streaming issue 596).
        """
        app: Any = self.app
        consumer: Any = app.consumer
        if self.should_stop:
            raise stock.ServiceStopped
        if self._superseded(generation):
            raise stock.RebalanceAgain
        await app.on_rebalance_complete.send()
        consumer.stop_flow()
        async with consumer.delivery_lock:
            if self._superseded(generation):
                raise stock.RebalanceAgain
            consumer.takeover = self._takeovers
            consumer.resume_partitions(set(positions))
            if positions:
                await self._wait(consumer.seek_wait(positions), timeout=app.conf.broker_request_timeout)
            # What lies below is done; without this the hints would begin with a gap and never be committed.
            consumer._committed_offset.update(positions)
            if self._superseded(generation):
                raise stock.RebalanceAgain
            self._set_recovery_ended()
            self.completed.set()
            app.flow_control.resume()
            consumer.resume_flow()
        await app._fetcher.maybe_start()
        self.tables.on_actives_ready()
        self.tables.on_standbys_ready()
        app.on_rebalance_end()

    def _superseded(self, generation: int) -> bool:
        return self.app.consumer_generation_id != generation or self.signal_recovery_start.is_set()

    @Service.task
    @replaces(stock.Recovery, "_slurp_changelogs", "7825c7e50f76")
    async def _slurp_changelogs(self) -> None:
        """Changelog records never come this way, and its idle tick would end a recovery that is under way."""

    @Service.task
    @replaces(stock.Recovery, "_publish_stats", "48939a846a9a")
    async def _publish_stats(self) -> None:
        """It counts changelog records, of which none come this way, and would report an error every five seconds."""
