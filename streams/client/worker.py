"""Does runs: the facade that registers functions and puts a worker's parts together."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from streams.client.attempts import Attempts
from streams.client.classic_intake import open_classic_intake
from streams.client.engine import Engine
from streams.client.functions import F, Functions
from streams.client.heartbeats import Heartbeats
from streams.client.intake import Intake
from streams.client.reports import Reports
from streams.client.revocations import Revocations
from streams.client.sender import Sender, make_producer
from streams.client.share_group import prepare
from streams.client.share_intake import open_share_intake
from streams.client.stopping import Stopping, stop_on_signals
from streams.client.waiting import open_when_up, wait_for_topic
from streams.errors import ConfigError, NotDelivered
from streams.kafka import KafkaSettings

_LOG: Final = logging.getLogger("streams.client.worker")

T = TypeVar("T")

# How long a turn waits for room, and for work: a request to stop is noticed within twice this time.
_WAIT_S: Final = 0.2

# For the last reports, when the worker stops. SIGTERM must end a worker without runs within 5 s.
_FLUSH_S: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker takes and does runs. Raises `ConfigError` for what cannot be."""

    concurrency: int = 8  # runs in progress at most; plain functions have a thread each
    intake: Literal["share", "classic"] = "share"  # share group (a preview, Kafka >= 4.2) or classic consumer group
    group: str | None = None  # workers of one group share the runs; None: `<prefix>workers`
    drain_s: float = 30.0  # how long a stopping worker waits for its runs; then they are handed back
    name: str = ""  # shown to people; empty: host and process
    announce: bool = True  # report each start; without, a run's lease is first extended after a third of it
    listen: bool = True  # read the dispatch topic for revocations; without, a cancelled run goes on to its end

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ConfigError("must be at least 1", field="concurrency", value=self.concurrency)
        if self.intake not in {"share", "classic"}:
            raise ConfigError("must be 'share' or 'classic'", field="intake", value=self.intake)
        if self.drain_s < 0:
            raise ConfigError("must not be negative", field="drain_s", value=self.drain_s)


class Worker:
    """Takes dispatches, runs the function of their workflow, and reports.

        worker = Worker(KafkaSettings(servers="localhost:9092"), WorkerSettings(concurrency=64))

        @worker.run("summarise")
        async def summarise(run: Run) -> int:
            answer = await model.ask(run.payload["document"])
            return answer.tokens

        worker.serve()

    Functions are called at least once per run: see `Run` about attempts. Every worker of a group must know every
    workflow, or have a default function (`@worker.run()`).
    """

    def __init__(self, kafka: KafkaSettings, settings: WorkerSettings | None = None) -> None:
        self._kafka = kafka
        self._settings = settings or WorkerSettings()
        self._functions = Functions()
        self._stopping = Stopping()
        self._engine: Engine | None = None

    def run(self, workflow: str | None = None) -> Callable[[F], F]:
        """Register the decorated function for a workflow; without a name, for all that have none.

        It gets a `Run`. It returns the tokens spent in total, or None to leave what `Run.spent` added up; with
        neither, the estimate stands. What it may raise is in `streams.client.verdicts`. Raises `ConfigError` if there
        is one already.
        """

        def register(function: F) -> F:
            self._functions.add(workflow, function)
            return function

        return register

    def stop(self) -> None:
        """Ask a serving worker to drain and return; asked twice, it does not wait for its runs. Thread-safe."""
        self._stopping.ask()

    @property
    def in_progress(self) -> int:
        """How many runs are in progress."""
        return len(self._engine.attempts) if self._engine else 0

    def serve(self) -> None:
        """Work until stopped; SIGTERM and SIGINT stop it too, if this is the main thread. Can be called once.

        A broker that is not up yet is waited for. Raises `ConfigError` for settings that cannot work, `NotDelivered`
        if last reports could not be handed in (their runs come again), or what made the worker unable to go on.
        """
        if not self._functions:
            raise ConfigError("register a function with @worker.run() first", field="worker")
        with stop_on_signals(self._stopping):
            if wait_for_topic(self._kafka, self._kafka.topics.dispatch, give_up=lambda: self._stopping.asked):
                self._serve()

    def _serve(self) -> None:
        settings = self._settings
        name = settings.name or f"{socket.gethostname()}-{os.getpid()}"
        reports = Reports(
            Sender(make_producer(self._kafka, report_success=False)), self._kafka.topics.completions, name
        )
        # What can fail comes before the first thread is started.
        revocations = self._opened(lambda: Revocations(self._kafka)) if settings.listen else None
        intake = self._opened(self._open_intake)
        if intake is None:
            if revocations is not None:
                revocations.stop()
            return
        engine = self._engine = Engine(
            intake=intake,
            reports=reports,
            functions=self._functions,
            concurrency=settings.concurrency,
            announce=settings.announce,
        )
        heartbeats = Heartbeats(engine.attempts, beat=reports.heartbeat, abandon=engine.abandon, died=engine.fail)
        with ExitStack() as stack:
            # Last in, first out: the runs end while heartbeats still keep them alive.
            stack.callback(self._hand_in, reports)
            stack.callback(heartbeats.stop)
            if revocations is not None:
                stack.callback(revocations.stop)
            stack.callback(engine.drain, self._wait_for_runs)
            heartbeats.start()
            if revocations is not None:
                revocations.start(engine.revoke, engine.fail)
            _LOG.info("streams.client.ready worker=%s group=%s intake=%s", name, self._group, settings.intake)
            while not self._stopping.asked and engine.failure is None:
                engine.turn(_WAIT_S)
        if engine.failure is not None:
            raise engine.failure

    @property
    def _group(self) -> str:
        return self._settings.group or self._kafka.worker_group

    def _opened(self, open_: Callable[[], T]) -> T | None:
        return open_when_up(open_, give_up=lambda: self._stopping.asked)

    def _open_intake(self) -> Intake:
        if self._settings.intake == "classic":
            return open_classic_intake(self._kafka, self._group)
        prepare(self._kafka, self._group)
        return open_share_intake(self._kafka, self._group)

    def _wait_for_runs(self, attempts: Attempts) -> bool:
        return self._stopping.wait_for(attempts, self._settings.drain_s)

    def _hand_in(self, reports: Reports) -> None:
        left = reports.flush(_FLUSH_S)
        if left:
            raise NotDelivered(f"{left} last reports are not in Kafka; their runs will come again", failed=left)
