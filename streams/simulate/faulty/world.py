"""The deployment as it goes on, tick by tick, and the faults that befall its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from streams.core import counts
from streams.errors import OwnershipLost, StateUnreadable, StepAborted
from streams.simulate.faulty.chances import COMPACTED, FENCED, KEPT, KILLED, MOVED, USUAL, Chances
from streams.simulate.faulty.ledger import Violation
from streams.simulate.faulty.log import Log
from streams.simulate.faulty.owner import Owner
from streams.simulate.faulty.scene import Scene
from streams.simulate.faulty.shard import Load
from streams.simulate.faulty.traffic import Producers, policies
from streams.simulate.faulty.witness import Witness
from streams.simulate.faulty.workers import Workers
from streams.simulate.faulty.writer import Crashed, Interruptions, LogWriter

_BEGIN_MS: Final = 1_764_000_000_000
_LONGEST_TICK_MS: Final = 100
_ABSENT: Final = 5  # ticks until the group notices that somebody has died, at most
_AWAY: Final = 4  # ticks that go by while an owner sleeps in the middle of a step, at most
_ZOMBIE: Final = 0.3  # chance at each tick that one wakes up
_DRAINED_WITHIN: Final = 3_000  # ticks


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is simulated."""

    shards: int = 3
    processes: int = 3
    tenants: int = 6
    ticks: int = 80
    skew_ms: int = 80  # between a process's clock and the world's, at most
    rates: Mapping[str, float] = field(default_factory=lambda: USUAL)


class Outcome(NamedTuple):
    """How a run went."""

    seed: int
    steps: int  # that were committed
    runs: int  # that were accepted
    reigns: int  # takeovers, over all shards
    fired: dict[str, int]  # faults, by kind
    counts: dict[str, int]  # what the steps have counted: see `streams.core.counts`
    widest_gap_ppm: int  # the widest gap that was seen, of its bound
    problem: str | None  # the first thing found wrong


MakeWriter = Callable[[Scene, int, int, Interruptions], LogWriter]


def simulate(
    seed: int, load: Load, setting: Setting | None = None, make_writer: MakeWriter = LogWriter
) -> tuple[Outcome, Log]:
    """Run a deployment until all is served, or something is wrong; return how it went, and what its topics hold.

    `load` makes a shard of its rows; `make_writer` is there for builds that are wrong on purpose.
    """
    world = _World(seed, load, setting or Setting(), make_writer)
    problem = None
    try:
        world.run()
    except (Violation, StateUnreadable) as found:
        problem = str(found)
    return world.outcome(problem), world.log


class _World:
    def __init__(self, seed: int, load: Load, setting: Setting, make_writer: MakeWriter) -> None:
        self.log: Final = Log()
        self.log.now_ms = _BEGIN_MS
        self._seed: Final = seed
        self._load: Final = load
        self._setting: Final = setting
        self._make_writer: Final = make_writer
        self._chances: Final = Chances(Random(seed), setting.rates)
        self._scene: Final = Scene(self.log, self._chances, setting.shards)
        self._workers: Final = Workers(self._scene)
        self._producers: Final = Producers(self._scene, setting.tenants)
        self._witness: Final = Witness(self.log, setting.shards, self._workers.spent)
        self._owners: list[Owner | None] = [None] * setting.shards  # those that the group has assigned
        self._processes = [shard % setting.processes for shard in range(setting.shards)]  # who has which shard
        skew = setting.skew_ms
        self._skews = [self._chances.random.randint(-skew, skew) for _ in range(setting.processes)]
        self._absent = [0] * setting.shards  # ticks for which nobody will take a shard over
        self._zombies: list[Owner] = []
        self._asleep = False  # whether an owner sleeps in the middle of a step
        self._reigns = 0

    def run(self) -> None:
        """Let it all happen. Raises `Violation`."""
        stated = policies(self._setting.tenants, self._setting.shards)
        for tick in range(self._setting.ticks):
            if tick % -(-self._setting.ticks // len(stated)) == 0:
                self._producers.state(stated[tick * len(stated) // self._setting.ticks])
            self._producers.file()
            self._trouble()
            self._tick()
        self._drain()
        self._witness.at_rest()

    def outcome(self, problem: str | None) -> Outcome:
        fired = dict(sorted(self._chances.fired.items()))
        counted = dict(sorted(self._witness.counts.items()))
        runs = counted.get(counts.ACCEPTED, 0)
        return Outcome(
            self._seed, self._witness.steps, runs, self._reigns, fired, counted, self._witness.widest_gap, problem
        )

    def _drain(self) -> None:
        """Serve what is left, with no more trouble."""
        self._chances.calm = True
        quiet = 0
        for _ in range(_DRAINED_WITHIN):
            quiet = 0 if self._tick() or not self._workers.idle else quiet + 1
            owners = [owner for owner in self._owners if owner is not None]
            views = [owner.core.snapshot().shard for owner in owners]
            left = any(view.queued_runs or view.flight_runs for view in views)
            if quiet > 1 and not left and not self._zombies and len(owners) == self._setting.shards:
                return
        raise Violation(f"it does not come to rest within {_DRAINED_WITHIN} ticks")

    def _tick(self) -> bool:
        """Let time pass, and everybody do what is to be done; tell whether a shard has taken a step."""
        self.log.now_ms += self._chances.random.randint(1, _LONGEST_TICK_MS)
        self._workers.work()
        for zombie in [*self._zombies]:
            if self._chances.random.random() < _ZOMBIE:
                self._zombies.remove(zombie)
                self._wake(zombie)
        return any([self._step(shard) for shard in range(self._setting.shards)])  # noqa: C419 - all of them

    def _step(self, shard: int) -> bool:
        """Let a shard's owner take a step; tell whether it did, or would have."""
        if self._absent[shard]:
            self._absent[shard] -= 1
            return True
        owner = self._owners[shard] or self._take_over(shard)
        if not self._goes_on(owner, owner.step):
            return False
        if self._owners[shard] is owner:
            self._witness.look(owner)
        return True

    def _goes_on(self, owner: Owner, act: Callable[[], object]) -> bool:
        """Let an owner write, and bear the consequences; tell whether it has written, or somebody has been at it."""
        shard = owner.shard
        try:
            return act() is not False
        except Crashed:
            if self._owners[shard] is owner:
                self._die(shard)
        except StepAborted:
            owner.reload()
            if self._owners[shard] is owner:
                self._witness.look(owner)
        except OwnershipLost:
            if self._owners[shard] is owner:  # its transaction has timed out: the shard is taken again
                self._owners[shard] = None
            else:  # it slept in the middle of the step, or did not know, and somebody else has the shard now
                self._chances.fired[FENCED] += 1
        return True

    def _take_over(self, shard: int) -> Owner:
        self._reigns += 1
        interruptions = Interruptions(self._chances, lambda: self._sleep(shard))
        writer = self._make_writer(self._scene, shard, self._reigns, interruptions)
        owner = Owner(self._scene, shard, writer, self._load, skew_ms=self._skews[self._processes[shard]])
        self._owners[shard] = owner
        self._witness.look(owner)
        return owner

    def _die(self, shard: int) -> None:
        self._owners[shard] = None
        self._absent[shard] = self._chances.random.randint(0, _ABSENT)

    def _sleep(self, shard: int) -> bool:
        """The owner sleeps in the middle of its step: the shard goes to another process, and all others go on."""
        if self._asleep:
            return False  # one sleeper at a time
        self._asleep = True
        self._move(shard)
        for _ in range(self._chances.random.randint(1, _AWAY)):
            self._producers.file()
            self._tick()
        self._asleep = False
        return True

    def _move(self, shard: int) -> None:
        self._owners[shard] = None
        others = [each for each in range(self._setting.processes) if each != self._processes[shard]]
        self._processes[shard] = self._chances.random.choice(others or [0])

    def _trouble(self) -> None:
        """What befalls processes between steps."""
        if self._chances.fires(KILLED):
            killed = self._chances.random.randrange(self._setting.processes)
            for shard in range(self._setting.shards):
                if self._processes[shard] == killed:
                    self._move(shard)
                    self._die(shard)
        for shard in range(self._setting.shards):
            owner = self._owners[shard]
            if owner is None:
                continue
            if self._chances.fires(MOVED):
                self._zombies.append(owner)
                self._move(shard)
            elif owner.stepper.arrived and self._chances.fires(KEPT):
                # A rebalance has left the shard where it was: its owner shows that nobody has fenced it.
                self._goes_on(owner, owner.stepper.confirm)

        for place in (("policy", 0), *(("state", shard) for shard in range(self._setting.shards))):
            if self._chances.fires(COMPACTED):
                self._witness.follow()  # it would miss what is deleted
                self.log.compact(place)

    def _wake(self, zombie: Owner) -> None:
        """A former owner goes on as if nothing had happened: it must not get through."""
        if self._owners[zombie.shard] is None:
            self._take_over(zombie.shard)
        fenced = self._chances.fired[FENCED]
        stepped = self._goes_on(zombie, zombie.step)
        if not stepped:
            self._goes_on(zombie, zombie.stepper.confirm)
        if self._chances.fired[FENCED] == fenced:
            raise Violation(f"shard {zombie.shard}: a former owner has written beside the new one")
