"""Puts the changed consumer and recovery in the places where Faust makes its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import faust
from faust.app import base as stock
from faust.tables import manager as stock_tables
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.web import base as stock_web
from faust.web.drivers import aiohttp as web_driver

from streams.app.faust_overrides.consumer import BatchScheduler, Consumer
from streams.app.faust_overrides.pins import replaces
from streams.app.faust_overrides.recovery import Handover, HandoverRecovery


class Transport(driver.Transport):
    """Makes our consumer."""

    Consumer = Consumer


class Web(web_driver.Web):
    """Serves our pages only."""

    @replaces(stock_web.Web, "_enabled_blueprints", "0a5b53f233d4")
    def _enabled_blueprints(self) -> list[Any]:
        """Stock adds pages of its own, some of them whatever the settings say; each would be one more to guard."""
        return []


class TableManager(stock_tables.TableManager):
    """Makes our recovery."""

    _handover_recovery: HandoverRecovery | None = None

    @replaces(stock_tables.TableManager, "on_start", "365dd25fbc0e")
    async def on_start(self) -> None:
        """Stock waits a second first, which every start and every takeover by a new process would take longer."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()

    @property
    @replaces(stock_tables.TableManager, "recovery", "f0bf5de78b4c")
    def recovery(self) -> HandoverRecovery:
        """Puts our recovery in place."""
        if self._handover_recovery is None:
            app: Any = self.app
            self._handover_recovery = HandoverRecovery(app, self, app.handover, beacon=self.beacon, loop=self.loop)
            self._recovery = self._handover_recovery  # where stock code stops it
        return self._handover_recovery


class WithoutProducer(stock.BootStrategy):
    """What Faust starts. Its producer would write nothing, and end the process if no broker answers when it starts."""

    enable_kafka_producer = False


class SchedulerApp(faust.App):
    """A Faust app whose assignments go to a `Handover`. Takes Faust's settings as keyword arguments."""

    BootStrategy = WithoutProducer

    def __init__(self, id: str, *, handover: Handover, **settings: Any) -> None:  # noqa: A002 - Faust's name
        self.handover = handover
        super().__init__(id, ConsumerScheduler=BatchScheduler, TableManager=TableManager, **settings)

    def rejoin(self) -> None:
        """Ask the group what is ours. An assignment follows, and a takeover, if Kafka answers; else once it does.

        Only the group's coordinator can tell whether this process is still a member: one that was frozen learns here
        that it is not, and joins as a new one.
        """
        consumer: Any = self.consumer
        consumer.rejoin()

    def pause(self, partitions: Iterable[TP]) -> None:
        """Fetch no more of them until a takeover says where to go on."""
        self.consumer.pause_partitions(partitions)

    @replaces(stock.App, "_new_transport", "42db531312dd")
    def _new_transport(self) -> Transport:
        """Puts our transport in place, whatever the URL's scheme."""
        return Transport(self.conf.broker_consumer, self)

    @replaces(stock.App, "_new_web", "9558ffdcacfa")
    def _new_web(self) -> Web:
        """Puts our web server in place, which has none of Faust's pages."""
        return Web(self)

    @replaces(stock.App, "on_stop", "bfe5a933defb")
    async def on_stop(self) -> None:
        """A step under way ends before the group is left: stock stops waiting for it, or waits for ever."""
        await self.handover.release()
        await super().on_stop()


class SchedulerWorker(faust.Worker):
    """Starts the app's services. Signals, logging and the terminal are ours."""

    def __init__(self, app: SchedulerApp, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(app, loop=loop, override_logging=False, redirect_stdouts=False, quiet=True)
        self.spinner = None

    def install_signal_handlers(self) -> None:
        """The process has its own."""

    async def on_execute(self) -> None:
        """No process title, no banner."""

    def on_worker_shutdown(self) -> None:
        """The same at the end."""
