"""`kill -9` at random points of a step, again and again, under load: nothing lost, nothing doubled, every token found.

Each scheduler that starts is given one point inside its steps at which it may die (`streams.app.faults`); some are
killed from outside as well. Two run at a time and share the shards, so a death is a takeover, and a return another.
The long form (`make chaos`) also freezes schedulers until others have taken over, and kills the broker.
"""

import logging
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from streams import clock
from streams.app.faults import POINTS
from streams.local import LocalKafka
from tests.integration.arithmetic import gather, problems
from tests.integration.deployment import Deployment, deploy
from tests.integration.processes import SESSION_S, SchedulerProcess
from tests.integration.traffic import traffic

LOG = logging.getLogger(__name__)

SHARDS = 4
LOOK_S = 0.1
KILLED = -9
UNAVAILABLE = 75  # "Kafka does not answer, try again"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often what must happen. Kills come from inside and outside, one at least at each point of a step."""

    kills: int
    freezes: int = 0
    broker_kills: int = 0
    chance: float = 0.01  # of dying, at the given point of each step
    per_s: int = 150  # requests


SHORT = Plan(kills=20)
LONG = Plan(kills=200, freezes=40, broker_kills=15, chance=0.003, per_s=300)
PLAN = LONG if os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly" else SHORT


class Fate:
    """Restarts two schedulers whenever they die, and sees to it that they do."""

    def __init__(self, here: Deployment, kafka: LocalKafka, plan: Plan, *, seed: int) -> None:
        self.here = here
        self.trace = here.folder / "faults.txt"
        self.outside = self.freezes = self.broker_kills = self.starts = 0
        self._kafka = kafka
        self._plan = plan
        self._endings = {None, KILLED, UNAVAILABLE} if plan.broker_kills else {None, KILLED}
        self._random = random.Random(seed)
        self._thaw_at: dict[SchedulerProcess, float] = {}
        self.schedulers = [here.scheduler(f"scheduler-{number}", faults=self.next_fault()) for number in (1, 2)]

    @property
    def inside(self) -> Counter[str]:
        """How often a fault has fired, by point."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return Counter(line.split()[1] for line in lines)

    @property
    def fulfilled(self) -> bool:
        plan, inside = self._plan, self.inside
        return (
            self.outside + inside.total() >= plan.kills
            and self.outside > 0
            and all(inside[point] for point in POINTS)
            and self.freezes >= plan.freezes
            and self.broker_kills >= plan.broker_kills
        )

    def next_fault(self) -> str:
        """One point for each scheduler that starts, in turn."""
        point = POINTS[self.starts % len(POINTS)]
        self.starts += 1
        return f"{point}={self._plan.chance};seed={self.starts};trace={self.trace}"

    def act(self) -> None:
        """Do somebody harm now and then, and start again whatever is dead."""
        if self._now_and_then(5):
            self._kill()
        if self.freezes < self._plan.freezes and self._now_and_then(10):
            self._freeze()
        if self.broker_kills < self._plan.broker_kills and self._now_and_then(30):
            self.broker_kills += 1
            self._kafka.kill(1)
            self._kafka.start(1)
        for scheduler, at in list(self._thaw_at.items()):
            if clock.monotonic() >= at:
                del self._thaw_at[scheduler]
                scheduler.send(signal.SIGCONT)
        for scheduler in self.schedulers:
            code = scheduler.poll()
            assert code in self._endings, f"{scheduler.name} ended by itself, with {code}"
            if code is not None:
                self._thaw_at.pop(scheduler, None)
                scheduler.start(faults=self.next_fault())

    def end(self) -> None:
        """Leave two live schedulers that do no harm to themselves."""
        for scheduler in self.schedulers:
            if scheduler.poll() is None:
                scheduler.kill()
            scheduler.start(faults=None)

    def _now_and_then(self, every_s: float) -> bool:
        return self._random.random() < LOOK_S / every_s

    def _kill(self) -> None:
        scheduler = self._random.choice(self.schedulers)
        if scheduler.poll() is None:
            scheduler.kill()
            self.outside += 1

    def _freeze(self) -> None:
        """Stop one for so long that the group gives its shards away, mostly."""
        scheduler = self._random.choice(self.schedulers)
        if scheduler not in self._thaw_at and scheduler.poll() is None:
            scheduler.send(signal.SIGSTOP)
            self._thaw_at[scheduler] = clock.monotonic() + SESSION_S * (1 + 2 * self._random.random())
            self.freezes += 1


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(prefix: str, tmp_path: Path) -> None:
    with LocalKafka() as kafka:
        here = deploy(kafka.bootstrap, prefix, tmp_path, shards=SHARDS, window=200)
        fate = Fate(here, kafka, PLAN, seed=1)
        one, two = fate.schedulers
        with one, two, traffic(here.servers, prefix, per_s=PLAN.per_s) as (feeder, workers):

            def fulfilled() -> bool:
                fate.act()
                return fate.fulfilled

            clock.wait_until(fulfilled, 12 * PLAN.kills, LOOK_S, what=f"{PLAN}")
            feeder.finish()
            fate.end()
            evidence = here.prove(deadline_s=120)
        LOG.info(
            "%d kills from outside, %s inside, %d freezes, %d kills of the broker: %d runs filed, %d dispatches, "
            "%d reports, %d steps, epochs %s",
            fate.outside,
            dict(fate.inside),
            fate.freezes,
            fate.broker_kills,
            feeder.filed,
            len(evidence.dispatches),
            workers.reported,
            sum(len(entries) for entries in evidence.journal.values()),
            [entries[-1].epoch for entries in evidence.journal.values()],
        )


def test_the_arithmetic_finds_dispatches_sent_outside_the_transaction(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    """The same kills in a build that is broken on purpose: without this the test above would prove nothing."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    trace = tmp_path / "faults.txt"
    faults = f"before_commit=0.5;trace={trace}"

    def found_out() -> bool:
        found = problems(gather(here.servers, prefix, 1))
        return all(any(what in each for each in found) for what in ("dispatched 2 times", "sequence numbers twice"))

    with (
        here.scheduler("broken", module="tests.integration.broken_scheduler") as broken,
        traffic(here.servers, prefix, per_s=50) as (feeder, _),
    ):
        broken.wait_until_ready({0})
        clock.wait_until(lambda: feeder.filed > 100, 20, what="a hundred requests")
        broken.kill()
        # A step that was killed may have had nothing to send, and the next owner must get as far as deciding again.
        for _ in range(20):
            broken.start(faults=faults)
            clock.wait_until(lambda: broken.poll() == KILLED, 60, what="the fault")
            if found_out():
                break
    assert found_out()
    assert {line.split()[1] for line in trace.read_text().splitlines()} == {"before_commit"}
