"""A whole deployment under load, and everything that can be reached of it to do it harm."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams import clock
from streams.admin.kafka import admin_client, create_topic
from streams.app.faults import POINTS
from streams.app.settings import Settings
from streams.core.policy import Leases
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from tests.integration.arithmetic import Evidence
from tests.integration.deployment import deploy
from tests.integration.faults.plan import Fault, Plan
from tests.integration.faults.progress import Watcher
from tests.integration.faults.proxy import Network
from tests.integration.faults.record import Fired
from tests.integration.faults.workers import WorkerProcess
from tests.integration.processes import ChildProcess, SchedulerProcess
from tests.integration.traffic import Feeder

LOG: Final = logging.getLogger(__name__)

SHARDS: Final = 4
RECOVERY_S: Final = 120.0  # a broker that was killed needs 10 on a busy machine, and what waited for it 20 more
DRAIN_S: Final = 240.0  # for what was filed while nothing was served, and for reading all of it

# Short, so that the runs of killed workers come back while the test still runs. A worker that is only cut off for
# longer loses its runs too: they are done twice then, as two attempts.
LEASES: Final = Leases(lease_ms=5_000, min_lease_ms=1_000, backoff_ms=20, max_backoff_ms=100, max_attempts=100)
_WORKERS: Final = 2
_LOOK_S: Final = 0.1
_CRITICAL: Final = "streams.app.failed"


class Stage:
    """Schedulers behind the network, workers and a producer in front of it. Use as a context manager.

    Whatever ends by itself is started again, as by a supervisor, and noted in `ended`.
    """

    def __init__(self, kafka: LocalKafka, network: Network, plan: Plan, prefix: str, folder: Path) -> None:
        self.kafka: Final = kafka
        self.network: Final = network
        self.chance: Final = random.Random(plan.seed)
        self.here: Final = deploy(kafka.bootstrap, prefix, folder, shards=SHARDS, window=200, leases=LEASES)
        self.settings: Final = Settings(kafka=network.bootstrap, prefix=prefix, shards=SHARDS)
        self.filler: Final = f"{prefix}filler"  # a topic of no meaning, to fill disks with
        create_topic(admin_client(KafkaSettings(servers=kafka.bootstrap)), self.filler, 1, len(kafka.pids), {})
        self.trace: Final = folder / "faults.txt"
        self.schedulers: Final = [self._scheduler(f"scheduler-{number + 1}") for number in range(plan.schedulers)]
        self.spare: Final = self._scheduler("spare")
        self.workers: Final = [
            WorkerProcess(folder, f"worker-{number + 1}", kafka=kafka.bootstrap, prefix=prefix, intake=plan.intake)
            for number in range(_WORKERS)
        ]
        self.feeder: Final = Feeder(kafka.bootstrap, prefix, per_s=plan.per_s, seed=plan.seed)
        self.watcher: Final = Watcher(KafkaSettings(servers=kafka.bootstrap, prefix=prefix), SHARDS)
        self.fired: Final[list[Fired]] = []
        self.ended: Final[list[str]] = []  # who ended without being told to, and how
        self._expected: Final[set[ChildProcess]] = {self.spare}  # to be down
        self._begun = 0.0
        self._stack: Final = ExitStack()

    # --- life

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for process in (*self.schedulers, *self.workers):
                stack.enter_context(process)
                if process is self.schedulers[0]:
                    self.schedulers[0].wait_until_ready(set(range(SHARDS)))
            stack.enter_context(self.watcher)
            stack.callback(self.feeder.finish)
            self.feeder.start()
            self._begun = clock.monotonic()
            self.share(self.schedulers)
            self.await_progress("the start")
            self._stack.push(stack.pop_all())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note("\n".join(["faults so far:", *map(str, self.fired), *self.ended]))
        self._stack.__exit__(kind, error, trace)

    def drain(self) -> Evidence:
        """Let everything be served, and prove that all is as it must be."""
        self.feeder.finish()
        return self.here.prove(deadline_s=DRAIN_S)

    # --- who may be harmed

    def pick(self) -> SchedulerProcess:
        """A scheduler that serves something now."""

        def choose() -> SchedulerProcess | None:
            self.tend()
            able = [each for each in self.schedulers if each not in self._expected and each.serving()]
            return self.chance.choice(able) if able else None

        found = clock.wait_until(choose, RECOVERY_S, _LOOK_S, what="a scheduler that serves something")
        assert found is not None
        return found

    @contextmanager
    def down(self, process: ChildProcess) -> Iterator[None]:
        """While it is meant to be down, or frozen."""
        self._expected.add(process)
        yield
        self._expected.discard(process)

    def arm(self, victim: SchedulerProcess, point: str) -> None:
        """Let it die when it passes that point of a step next."""
        new = self._arm_of(victim.name).with_suffix(".new")
        new.write_text(point, encoding="ascii")
        new.replace(self._arm_of(victim.name))  # whole, or not there

    def note(self, fault: Fault, target: str, *proof: str) -> None:
        self.fired.append(Fired(fault, target, clock.monotonic() - self._begun, "; ".join(proof)))
        LOG.info("%s", self.fired[-1])

    # --- what is waited for

    def share(self, schedulers: Sequence[SchedulerProcess]) -> list[set[int]]:
        """Wait until these serve all shards, each of them some, and return which."""

        def shared() -> list[set[int]]:
            self.tend()
            found = [each.serving() or set() for each in schedulers]
            whole = sorted(shard for shards in found for shard in shards) == list(range(SHARDS))
            return found if all(found) and whole else []

        names = ", ".join(each.name for each in schedulers)
        return clock.wait_until(shared, RECOVERY_S, _LOOK_S, what=f"{names}: all shards shared")

    def await_progress(self, after: str) -> None:
        """Wait until every shard has handed out work again, and some has come back."""
        before = self.watcher.seen()

        def goes_on() -> bool:
            self.tend()
            return self.watcher.seen().beyond(before)

        try:
            clock.wait_until(goes_on, RECOVERY_S, _LOOK_S, what=f"progress after {after}")
        except TimeoutError as error:
            error.add_note(f"from {before} to {self.watcher.seen()}")
            raise

    def tend(self) -> None:
        """Start again what has ended by itself."""
        for process in (*self.schedulers, *self.workers):
            if process not in self._expected and not process.running:
                self.ended.append(f"{process.name} ended by itself, with {process.poll()}: {_last_words(process)}")
                LOG.warning("%s", self.ended[-1])
                process.start()

    # --- inside

    def _scheduler(self, name: str) -> SchedulerProcess:
        points = ",".join(f"{point}=1" for point in POINTS)
        return self.here.scheduler(
            name, kafka=self.network.bootstrap, faults=f"{points};trace={self.trace};arm={self._arm_of(name)}"
        )

    def _arm_of(self, name: str) -> Path:
        return self.here.folder / f"{name}.arm"


def _last_words(process: ChildProcess) -> str:
    lines = process.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in reversed(lines) if _CRITICAL in line), lines[-1] if lines else "")
