"""Builds that are broken on purpose are found out, each by the sentences of the arithmetic that are its own.

Without this the fault tests would prove nothing. That the right build comes through the same is shown here for the
zombie, which is stopped where it can do most harm, and for the rest by the fault tests. A scheduler serves one shard,
and nobody reports on what it hands out: every step with an input has a dispatch, so it is enough to break one step.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams import clock
from streams.admin.kafka import admin_client, set_topic_configs
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import MAX_MESSAGE_BYTES
from tests.integration.arithmetic import Evidence, problems
from tests.integration.deployment import Deployment, deploy
from tests.integration.faults.harms import KILLED, is_frozen
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import Feeder, Workers

PER_S = 20
WINDOW = 100_000  # never full
FOUND_S = 60.0
RIGHT = "streams.app"

DOUBLED = ("dispatched 2 times", "sequence numbers twice [")
STEPS = "the journal's steps are not 1, 2, 3, ..."


@pytest.fixture
def here(kafka: LocalKafka, prefix: str, tmp_path: Path) -> Deployment:
    return deploy(kafka.bootstrap, prefix, tmp_path, shards=1, window=WINDOW)


@contextmanager
def fed(here: Deployment) -> Iterator[Feeder]:
    feeder = Feeder(here.servers, here.prefix, per_s=PER_S)
    feeder.start()
    try:
        yield feeder
    finally:
        feeder.finish()


def dispatched(here: Deployment, number: int) -> Evidence:
    """Wait until so many dispatches can be seen."""

    def seen() -> Evidence | None:
        evidence = here.gather()
        return evidence if len(evidence.dispatches) >= number else None

    evidence = clock.wait_until(seen, FOUND_S, 0.3, what=f"{number} dispatches")
    assert evidence is not None
    return evidence


def find(here: Deployment, *sentences: str) -> list[str]:
    """Wait until the arithmetic says all of this; return all that it says."""
    found: list[str] = []

    def said() -> bool:
        found[:] = problems(here.gather())
        return all(any(sentence in each for each in found) for sentence in sentences)

    try:
        clock.wait_until(said, FOUND_S, 0.3, what=f"{sentences}")
    except TimeoutError as error:
        error.add_note(f"it said: {found[:20]}")
        raise
    return found


class Faults:
    """Points of a step at which a process does harm to itself, once it is told to."""

    def __init__(self, folder: Path, point: str, number: str) -> None:
        self._arm, self._trace = folder / "arm", folder / "faults.txt"
        self._point = point
        self.setting = f"{point}=1;signal={number};arm={self._arm};trace={self._trace}"

    def arm(self) -> None:
        self._arm.write_text(self._point, encoding="ascii")

    @property
    def fired(self) -> list[str]:
        return [line.split()[1] for line in self._trace.read_text(encoding="ascii").splitlines()]


@contextmanager
def zombie_and_heir(here: Deployment, module: str) -> Iterator[tuple[SchedulerProcess, SchedulerProcess, Feeder]]:
    """Stop the owner in the middle of a transaction, let the other one take over and go on, and wake up the first."""
    faults = Faults(here.folder, "before_commit", "STOP")
    one, other = (here.scheduler(name, module=module, faults=faults.setting) for name in ("one", "other"))
    with one, other, fed(here) as feeder:
        clock.wait_until(lambda: {0} in _served(one, other) and set() in _served(one, other), FOUND_S, what="an owner")
        dispatched(here, 10)
        faults.arm()
        clock.wait_until(lambda: is_frozen(one) or is_frozen(other), FOUND_S, what="the owner stopped in a step")
        zombie, heir = (one, other) if is_frozen(one) else (other, one)
        heir.wait_until_ready({0})
        filed = feeder.filed
        clock.wait_until(lambda: feeder.filed > filed + PER_S, FOUND_S, what="some more requests")
        zombie.send(signal.SIGCONT)
        assert faults.fired == ["before_commit"]
        yield zombie, heir, feeder


def _served(*schedulers: SchedulerProcess) -> list[set[int] | None]:
    return [each.serving() for each in schedulers]


def take_back(zombie: SchedulerProcess, heir: SchedulerProcess) -> None:
    """Let the zombie be the owner once more, if the group does not see to that."""
    clock.wait_until(lambda: set() in _served(zombie, heir), FOUND_S, what="both being members")
    if heir.serving() == {0}:
        assert heir.stop() == 0
    zombie.wait_until_ready({0})


def test_a_zombie_of_the_right_build_does_no_harm(here: Deployment) -> None:
    with zombie_and_heir(here, RIGHT) as (zombie, heir, feeder):
        take_back(zombie, heir)
        feeder.finish()
        workers = Workers(here.servers, here.prefix)
        workers.start()
        try:
            here.prove()
        finally:
            workers.finish()


def test_fencing_off(here: Deployment) -> None:
    with zombie_and_heir(here, "tests.integration.broken.fencing_off"):
        find(here, *DOUBLED, STEPS)


def test_what_an_old_generation_loaded(here: Deployment) -> None:
    with zombie_and_heir(here, "tests.integration.broken.old_generation") as (zombie, heir, _):
        take_back(zombie, heir)
        find(here, *DOUBLED, STEPS, "shard 0: requests from")


def test_positions_left_out_of_the_transaction(here: Deployment) -> None:
    with here.scheduler("broken", module="tests.integration.broken.positions_left_out") as broken, fed(here):
        dispatched(here, 10)
        broken.kill()
        assert broken.poll() == KILLED
        broken.start()
        found = find(here, "shard 0: requests from 0 applied after", "requests were applied, and the answers are")
    assert not any(sentence in each for each in found for sentence in (*DOUBLED, STEPS)), found


def test_dispatches_outside_the_transaction(here: Deployment) -> None:
    faults = Faults(here.folder, "before_commit", "KILL")
    with (
        here.scheduler("broken", module="tests.integration.broken.outside", faults=faults.setting) as broken,
        fed(here),
    ):
        dispatched(here, 10)
        faults.arm()
        clock.wait_until(lambda: broken.poll() == KILLED, FOUND_S, what="the fault")
        assert faults.fired == ["before_commit"]
        broken.start()
        found = find(here, *DOUBLED)
    assert not any(STEPS in each or "applied after" in each for each in found), found  # the rest was in it


def test_deliveries_unchecked(here: Deployment) -> None:
    with here.scheduler("broken", module="tests.integration.broken.unchecked") as broken, fed(here):
        seen = len(dispatched(here, 10).dispatches)
        take_at_most(here, 100)  # bytes: no dispatch is as small
        clock.wait_until(lambda: "passed over" in broken.log.read_text(), FOUND_S, what="a delivery that failed")
        take_at_most(here, MAX_MESSAGE_BYTES)
        dispatched(here, seen + PER_S)
        found = find(here, STEPS, "sequence numbers twice [], missing [", "shard 0: requests from")
    assert not any("dispatched 2 times" in each for each in found), found


def take_at_most(here: Deployment, size: int) -> None:
    """Change what the dispatch topic takes, in bytes."""
    admin = admin_client(KafkaSettings(servers=here.servers, prefix=here.prefix))
    set_topic_configs(admin, here.names.dispatch, {"max.message.bytes": str(size)})
