"""Runs a scheduler process from the first look at Kafka to its exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError
from confluent_kafka.admin import AdminClient

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.admin.topics import Layout, describe, ensure, verify, wanted
from streams.app.assembly import Scheduler
from streams.app.door import CoreType
from streams.app.faust_overrides import SchedulerWorker, coordination
from streams.app.settings import Settings
from streams.app.waiting_page import waiting_page
from streams.core.shard import Shard
from streams.errors import ConfigError, FairstreamError, NotAuthorized, Unavailable
from streams.kafka import mapped_errors

_LOG: Final = logging.getLogger("streams.app")

_ASK_S: Final = 2.0  # a signal is seen after it at the latest
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 5.0
_LAST_WORDS_S: Final = 1.0  # for the threads beside the shards


def run_scheduler(settings: Settings, core: CoreType = Shard) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code: 0 after a signal, else the failure's.

    Waits for a Kafka that does not answer yet. Raises `ConfigError` for settings and topics that cannot be served.
    Must be called from the main thread. `core` is replaced by benchmarks only.
    """
    return _Process(settings, core).run()


class _Process:
    """One run: what signals and failures do to it."""

    def __init__(self, settings: Settings, core: CoreType) -> None:
        self._settings: Final = settings
        self._core: Final = core
        self._stopping: Final = threading.Event()
        self._failure: BaseException | None = None
        self._stop_serving: Callable[[], object] = lambda: None

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop("a signal"))
        try:
            with waiting_page(self._settings.web_host, self._settings.web_port):
                prepared = self._prepare()
        except OSError as error:
            raise self._cannot_listen(error) from error
        if not prepared:
            return 0
        with tempfile.TemporaryDirectory(prefix="fairstream-") as folder:
            data_dir = self._settings.data_dir or Path(folder)
            _make_folder(data_dir)
            scheduler = Scheduler(self._settings, data_dir, self._core, self._fail)
            scheduler.status.start()
            scheduler.policies.start()
            scheduler.watch.start()
            scheduler.checkpointer.start()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(scheduler))
            scheduler.checkpointer.close()
            scheduler.watch.close()
            scheduler.policies.close()
            scheduler.status.close()
            scheduler.checkpointer.join(_LAST_WORDS_S)
            scheduler.policies.join(_LAST_WORDS_S)
            scheduler.status.join(_LAST_WORDS_S)
        return self._exit_code()

    # --- before

    def _prepare(self) -> bool:
        """Return once Kafka answers and the topics are right; False if we are told to stop while waiting for it."""
        admin = admin_client(self._settings.kafka_settings)
        wait_s = _FIRST_WAIT_S
        said = False
        while not self._stopping.is_set():
            try:
                with mapped_errors("looking for Kafka"):
                    admin.list_topics(timeout=_ASK_S)
                self._check_topics(admin)
            except Unavailable as error:
                if not said:
                    _LOG.warning(
                        "streams.app.waiting kafka=%s: no answer yet, trying on: %s", self._settings.kafka, error
                    )
                    said = True
                # Not by the event's own wait: a signal in it, whose handler sets the event, would find its lock taken.
                with suppress(TimeoutError):
                    clock.wait_until(self._stopping.is_set, wait_s)
                wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
            else:
                if said:
                    _LOG.info("streams.app.found kafka=%s", self._settings.kafka)
                return True
        return False

    def _check_topics(self, admin: AdminClient) -> None:
        """Create what is missing, if told to; refuse what cannot be served."""
        settings = self._settings
        brokers = look(admin).brokers
        layout = Layout(
            shards=settings.shards, dispatch_partitions=settings.dispatch_partitions, prefix=settings.prefix
        )
        found = describe(admin, [topic.name for topic in wanted(layout, brokers)], settings=False)
        dispatch = found.get(settings.kafka_settings.topics.dispatch)
        if dispatch is not None:
            # Any count will do: it is the workers' affair, and nothing of ours depends on it.
            layout = replace(layout, dispatch_partitions=dispatch.partitions)
        if settings.create_topics:
            ensure(admin, layout)
        else:
            verify(found, wanted(layout, brokers))

    # --- serving

    async def _serve(self, scheduler: Scheduler) -> None:
        loop = asyncio.get_running_loop()
        worker = SchedulerWorker(scheduler.app, loop=loop)
        stop = asyncio.Event()
        self._stop_serving = lambda: loop.call_soon_threadsafe(stop.set)
        if self._stopping.is_set():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            # A handler of the loop's: it must wake the loop, which a Python handler alone does not.
            loop.add_signal_handler(number, self._stop, "a signal")
        serving = asyncio.ensure_future(worker.start())
        told = asyncio.ensure_future(stop.wait())
        await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
        if serving.done() and not told.done():
            self._fail(serving.exception() or worker.crash_reason or FairstreamError("Faust ended by itself"))
        await worker.stop()
        serving.cancel()
        told.cancel()
        await asyncio.gather(serving, told, return_exceptions=True)

    # --- the end

    def _stop(self, why: str) -> None:
        """Begin to end; from a signal handler or any thread."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        _LOG.info("streams.app.stopping: %s", why)
        # Nothing in the process may hang for longer than this, whatever state its threads and Kafka are in.
        limit = threading.Timer(self._settings.stop_timeout_s, self._force)
        limit.daemon = True
        limit.start()
        self._stop_serving()

    def _fail(self, error: BaseException) -> None:
        """End because of an error: the first one counts."""
        if self._failure is None:
            self._failure = error = self._explained(error)
            if isinstance(error, FairstreamError):
                _LOG.critical("streams.app.failed: %s", error)
            else:
                _LOG.critical("streams.app.failed", exc_info=error)
        self._stop("a failure")

    def _explained(self, error: BaseException) -> BaseException:
        """Say in our words what the consumer and the web server raise when the world is not as they need it."""
        if isinstance(error, (GroupAuthorizationFailedError, TopicAuthorizationFailedError)):
            return NotAuthorized(f"the consumer may not read: {error!r}; check this user's rights")
        if isinstance(error, coordination.HOPELESS):
            return ConfigError(f"the consumer cannot join: {error!r}", field="group", value=self._settings.group_id)
        if isinstance(error, KafkaError):
            return Unavailable(f"the consumer lost Kafka: {error!r}")
        if isinstance(error, OSError) and self._settings.web_port is not None:
            return self._cannot_listen(error)
        return error

    def _cannot_listen(self, error: OSError) -> ConfigError:
        place = f"{self._settings.web_host}:{self._settings.web_port}"
        return ConfigError(f"cannot listen: {error}", field="web_port", value=place)

    def _force(self) -> None:
        _LOG.warning(
            "streams.app.stop_forced seconds=%g: open steps are left to the next owner", self._settings.stop_timeout_s
        )
        sys.stderr.flush()
        os._exit(self._exit_code())

    def _exit_code(self) -> int:
        if self._failure is None:
            return 0
        return self._failure.exit_code if isinstance(self._failure, FairstreamError) else 1


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be made: {error}", field="data_dir", value=str(path)) from error
