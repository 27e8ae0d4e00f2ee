"""Each fault as a context manager: harm is done at its begin and mended at its end, and the record says what was seen.

Those to processes need a working deployment to happen; those to its surroundings are added while one of the others is
under way, and end before it does (see `plan`). What lasts for a while lasts as long as the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from streams import clock
from tests.integration.faults import harms
from tests.integration.faults.coordinators import Kind, coordinator_of, members_of
from tests.integration.faults.plan import AT_POINT, Fault
from tests.integration.faults.stage import RECOVERY_S, SHARDS, Stage
from tests.integration.processes import SESSION_S

_IN_PROGRESS: Final = 3  # runs of a worker that is killed, at least; one might end at the same moment
_DELAYED: Final = 20  # chunks, at least: some steps of a shard

Harm = Callable[[Stage], AbstractContextManager[None]]


# --- to processes


@contextmanager
def _kill(stage: Stage) -> Iterator[None]:
    victim = stage.pick()
    with stage.down(victim):
        stage.note(Fault.KILL, victim.name, harms.kill(victim))
        yield
        victim.start()


def _kill_at(fault: Fault, point: str) -> Harm:
    @contextmanager
    def harm(stage: Stage) -> Iterator[None]:
        victim = stage.pick()
        with stage.down(victim):
            stage.arm(victim, point)
            clock.wait_until(lambda: not victim.running, RECOVERY_S, what=f"{victim.name} dying {point}")
            assert victim.poll() == harms.KILLED, f"{victim.name} ended with {victim.poll()}"
            line = f"{victim.pid} {point}"
            assert line in stage.trace.read_text(encoding="ascii").splitlines()
            stage.note(fault, victim.name, f"its last trace is {line!r}", f"exit code {harms.KILLED}")
            yield
            victim.start()

    return harm


@contextmanager
def _terminate(stage: Stage) -> Iterator[None]:
    victim = stage.pick()
    with stage.down(victim):
        stage.note(Fault.TERMINATE, victim.name, harms.terminate(victim))
        yield
        victim.start()


@contextmanager
def _freeze(stage: Stage) -> Iterator[None]:
    """Until the group has given its shards away: it wakes up as a zombie."""
    victim = stage.pick()
    others = [each for each in stage.schedulers if each is not victim]
    with stage.down(victim):
        frozen = harms.freeze(victim)
        yield
        if others:
            gone = f"others serve {stage.share(others)}"
        else:
            group = stage.settings.group_id
            clock.wait_until(lambda: members_of(stage.here.servers, group) == 0, RECOVERY_S, what="the end of a member")
            gone = "the group has no member left"
        stage.note(Fault.FREEZE, victim.name, frozen, gone, harms.thaw(victim))


@contextmanager
def _join(stage: Stage) -> Iterator[None]:
    """Leave by SIGTERM or `kill -9`."""
    end = stage.chance.choice([harms.terminate, harms.kill])
    stage.spare.start()
    try:
        shared = stage.share([*stage.schedulers, stage.spare])
        yield
        left = end(stage.spare)
        stage.note(Fault.JOIN, stage.spare.name, f"it served {shared[-1]}", left, f"{stage.share(stage.schedulers)}")
    finally:
        if stage.spare.running:
            stage.spare.kill()


@contextmanager
def _kill_worker(stage: Stage) -> Iterator[None]:
    victim = stage.chance.choice(stage.workers)

    def busy() -> bool:
        stage.tend()
        return len(victim.in_progress()) >= _IN_PROGRESS

    clock.wait_until(busy, RECOVERY_S, what=f"{victim.name} in the middle of runs")
    with stage.down(victim):
        proof = harms.kill(victim)
        begun = victim.in_progress()
        assert begun, f"{victim.name} was killed in the middle of nothing"
        stage.note(Fault.WORKER, victim.name, proof, f"in the middle of {len(begun)} runs, such as {begun[0]}")
        yield
        victim.start()


# --- to what they need


@contextmanager
def _kill_broker(stage: Stage) -> Iterator[None]:
    node = stage.chance.choice(sorted(stage.kafka.pids))
    proof = harms.kill_broker(stage.kafka, node)
    yield
    stage.note(Fault.BROKER, f"broker {node}", proof, harms.start_broker(stage.kafka, node))


@contextmanager
def _kill_coordinator(stage: Stage) -> Iterator[None]:
    """The broker that keeps the transactions of a shard."""
    writer = stage.settings.transactional_id(stage.chance.randrange(SHARDS))

    def coordinator() -> int:
        return coordinator_of(stage.here.servers, Kind.TRANSACTIONS, writer)

    node = coordinator()
    proof = harms.kill_broker(stage.kafka, node)
    yield
    clock.wait_until(lambda: coordinator() != node, RECOVERY_S, what=f"another coordinator of {writer}")
    moved = f"coordinator {node} -> {coordinator()}"
    stage.note(Fault.COORDINATOR, f"coordinator of {writer}", proof, moved, harms.start_broker(stage.kafka, node))


@contextmanager
def _kill_two_brokers(stage: Stage) -> Iterator[None]:
    """No quorum of controllers, and no partition with two replicas in sync, until they are back."""
    nodes = stage.chance.sample(sorted(stage.kafka.pids), 2)
    proof = [harms.kill_broker(stage.kafka, node) for node in nodes]
    assert len(stage.kafka.pids) == 1
    yield
    stage.note(Fault.TWO_BROKERS, f"brokers {nodes}", *proof, harms.start_brokers(stage.kafka, nodes))


@contextmanager
def _cut(stage: Stage) -> Iterator[None]:
    number = clock.wait_until(stage.network.cut, RECOVERY_S, what="a connection to cut")
    stage.note(Fault.CUT, "network", f"{number} connections cut")
    yield


@contextmanager
def _refuse(stage: Stage) -> Iterator[None]:
    damage = stage.network.damage
    before = damage.refused
    stage.network.refuse()
    yield
    clock.wait_until(lambda: damage.refused > before, RECOVERY_S, what="a refused connection")
    stage.network.heal()
    stage.note(Fault.REFUSE, "network", f"{damage.refused - before} connections refused")


@contextmanager
def _slow(stage: Stage) -> Iterator[None]:
    damage = stage.network.damage
    before, delay_s = damage.delayed, stage.chance.uniform(0.05, 0.3)
    stage.network.delay(delay_s)
    yield
    clock.wait_until(lambda: damage.delayed >= before + _DELAYED, RECOVERY_S, what="delayed chunks")
    stage.network.heal()
    stage.note(Fault.SLOW, "network", f"{damage.delayed - before} chunks delayed by {delay_s * 1000:.0f} ms each")


@contextmanager
def _silence(stage: Stage) -> Iterator[None]:
    """For longer than the session timeout: the group drops everybody."""
    damage = stage.network.damage
    before, begun = damage.held, clock.monotonic()
    stage.network.silence()
    yield
    clock.pause(max(0.0, begun + 1.5 * SESSION_S - clock.monotonic()))  # the length of the fault
    clock.wait_until(lambda: damage.held > before, RECOVERY_S, what="a chunk that is held")
    stage.network.heal()
    length_s = clock.monotonic() - begun
    stage.note(Fault.SILENCE, "network", f"{damage.held - before} chunks held for up to {length_s:.1f} s")


@contextmanager
def _full(stage: Stage) -> Iterator[None]:
    node = stage.chance.choice(sorted(stage.kafka.pids))
    proof = harms.fill_disk(stage.kafka, node, stage.filler)
    yield
    stage.note(Fault.FULL, f"broker {node}", proof, harms.start_broker(stage.kafka, node))


HARMS: Final[dict[Fault, Harm]] = {
    Fault.KILL: _kill,
    **{fault: _kill_at(fault, point) for fault, point in AT_POINT.items()},
    Fault.TERMINATE: _terminate,
    Fault.FREEZE: _freeze,
    Fault.JOIN: _join,
    Fault.WORKER: _kill_worker,
    Fault.BROKER: _kill_broker,
    Fault.COORDINATOR: _kill_coordinator,
    Fault.TWO_BROKERS: _kill_two_brokers,
    Fault.CUT: _cut,
    Fault.REFUSE: _refuse,
    Fault.SLOW: _slow,
    Fault.SILENCE: _silence,
    Fault.FULL: _full,
}
