"""`kill -9` at random points of a step, again and again, under load: nothing lost, nothing doubled, every token found.

Each scheduler that starts is given one point inside its steps at which it may die (`streams.app.faults`); some are
killed from outside as well. Two run at a time and share the shards, so a death is a takeover, and a return another.
"""

import logging
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from streams import clock
from streams.app.faults import POINTS
from streams.local import LocalKafka
from tests.integration.arithmetic import gather, problems
from tests.integration.deployment import Deployment, deploy
from tests.integration.traffic import traffic

LOG = logging.getLogger(__name__)

KILLS = 200 if os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly" else 20  # `make chaos` for the long form
SHARDS = 4
CHANCE = 0.01  # of dying, at the given point of each step
LOOK_S = 0.1
KILLED = -9


class Fate:
    """Restarts two schedulers whenever they die, and sees to it that they do."""

    def __init__(self, here: Deployment, *, seed: int) -> None:
        self.here = here
        self.trace = here.folder / "faults.txt"
        self.outside = 0
        self.starts = 0
        self._random = random.Random(seed)
        self.schedulers = [here.scheduler(f"scheduler-{number}", faults=self.next_fault()) for number in (1, 2)]

    @property
    def inside(self) -> Counter[str]:
        """How often a fault has fired, by point."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return Counter(line.split()[1] for line in lines)

    @property
    def kills(self) -> int:
        return self.outside + self.inside.total()

    def next_fault(self) -> str:
        """One point for each scheduler that starts, in turn."""
        point = POINTS[self.starts % len(POINTS)]
        self.starts += 1
        return f"{point}={CHANCE};seed={self.starts};trace={self.trace}"

    def act(self) -> None:
        """Kill one from outside now and then, and start again whatever is dead."""
        if self._random.random() < LOOK_S / 4:
            scheduler = self._random.choice(self.schedulers)
            if scheduler.poll() is None and scheduler.serving():
                scheduler.kill()
                self.outside += 1
        for scheduler in self.schedulers:
            code = scheduler.poll()
            assert code in {None, KILLED}, f"{scheduler.name} ended by itself, with {code}"
            if code is not None:
                scheduler.start(faults=self.next_fault())


def run_under_kills(here: Deployment, *, kills: int, per_s: int, deadline_s: float, seed: int) -> Fate:
    """Feed and kill until so many have died; then let two live schedulers finish, and prove the result."""
    fate = Fate(here, seed=seed)
    one, two = fate.schedulers
    with one, two, traffic(here.servers, here.prefix, per_s=per_s) as (feeder, workers):
        end = clock.monotonic() + deadline_s

        def enough() -> bool:
            fate.act()
            return fate.kills >= kills and all(fate.inside[point] for point in POINTS)

        clock.wait_until(enough, end - clock.monotonic(), LOOK_S, what=f"{kills} kills, and one at each point")
        feeder.finish()
        for scheduler in fate.schedulers:
            if scheduler.poll() is None:
                scheduler.kill()
            scheduler.start(faults=None)
        evidence = here.prove()
        LOG.info(
            "%d kills (%d from outside, %s), %d runs filed, %d dispatches, %d reports, %d steps, epochs %s",
            fate.kills,
            fate.outside,
            dict(fate.inside),
            feeder.filed,
            len(evidence.dispatches),
            workers.reported,
            sum(len(entries) for entries in evidence.journal.values()),
            [entries[-1].epoch for entries in evidence.journal.values()],
        )
    return fate


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=SHARDS, window=200)
    run_under_kills(here, kills=KILLS, per_s=150, deadline_s=12 * KILLS, seed=1)


def test_the_arithmetic_finds_dispatches_sent_outside_the_transaction(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    """The same kill, once, in a build that is broken on purpose: without this the test above would prove nothing."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    trace = tmp_path / "faults.txt"
    with (
        here.scheduler("broken", module="tests.integration.broken_scheduler") as broken,
        traffic(here.servers, prefix, per_s=50) as (feeder, _),
    ):
        broken.wait_until_ready({0})
        clock.wait_until(lambda: feeder.filed > 100, 20, what="a hundred requests")
        broken.kill()
        broken.start(faults=f"before_commit=0.5;trace={trace}")
        clock.wait_until(lambda: broken.poll() == KILLED, 60, what="the fault")
        assert trace.read_text().split()[1] == "before_commit"
        broken.start()
        broken.wait_until_ready({0})
        clock.wait_until(lambda: problems(gather(here.servers, prefix, 1)), 30, what="findings")
    found = problems(gather(here.servers, prefix, 1))
    assert any("was dispatched 2 times" in each for each in found)
    assert any("sequence numbers twice" in each for each in found)
