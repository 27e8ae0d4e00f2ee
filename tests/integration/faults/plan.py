"""What is to happen, as data: which faults, how often, in which order, which of them together. All from a seed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from streams.app.faults import POINTS


class Fault(StrEnum):
    """The kinds of harm. `tests.integration.faults.kinds` does them."""

    # --- to processes
    KILL = "scheduler killed"
    KILL_BEFORE_BEGIN = "killed before_begin"
    KILL_AFTER_ROWS = "killed after_rows"
    KILL_AFTER_DISPATCHES = "killed after_dispatches"
    KILL_BEFORE_COMMIT = "killed before_commit"
    KILL_AFTER_COMMIT = "killed after_commit"
    TERMINATE = "scheduler terminated"
    FREEZE = "scheduler frozen"
    JOIN = "scheduler joins and leaves"
    WORKER = "worker killed"
    # --- to what they need
    BROKER = "broker killed"
    COORDINATOR = "coordinator killed"
    TWO_BROKERS = "two brokers killed"
    CUT = "connections cut"
    REFUSE = "connections refused"
    SLOW = "connections slow"
    SILENCE = "connections silent"
    FULL = "disk full"


AT_POINT: Final = {Fault(f"killed {point}"): point for point in POINTS}

# These need a working deployment to happen at all. The others can be added while they are under way.
TO_PROCESSES: Final = (Fault.KILL, *AT_POINT, Fault.TERMINATE, Fault.FREEZE, Fault.JOIN, Fault.WORKER)
TO_NETWORK: Final = (Fault.CUT, Fault.REFUSE, Fault.SLOW, Fault.SILENCE)
TO_SURROUNDINGS: Final = tuple(fault for fault in Fault if fault not in TO_PROCESSES)

# Of a hundred faults or so; what takes long is rare.
_SHARES: Final = {
    Fault.KILL: 10,
    **dict.fromkeys(AT_POINT, 4),
    Fault.TERMINATE: 6,
    Fault.FREEZE: 7,
    Fault.JOIN: 6,
    Fault.WORKER: 6,
    Fault.BROKER: 5,
    Fault.COORDINATOR: 4,
    Fault.TWO_BROKERS: 2,
    Fault.CUT: 5,
    Fault.REFUSE: 4,
    Fault.SLOW: 3,
    Fault.SILENCE: 3,
    Fault.FULL: 2,
}
_TOGETHER: Final = 0.5  # of the faults to surroundings strike while another fault is under way

Burst = tuple[Fault, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One round: a deployment of its own, and what happens to it."""

    seed: int
    schedulers: int = 2  # that are there all the time; another one joins and leaves
    counts: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 1))
    together: float = _TOGETHER
    per_s: int = 40  # requests
    intake: str = "share"

    def bursts(self) -> list[Burst]:
        """Return the faults in order; those of one burst are under way at the same time."""
        chance = random.Random(self.seed)
        first = self._drawn(TO_PROCESSES, chance)
        second = self._drawn(TO_SURROUNDINGS, chance)
        # With the only scheduler down there is nobody whose connections could fail.
        fit = second if self.schedulers > 1 else [fault for fault in second if fault not in TO_NETWORK]
        number = min(len(first), len(fit), round(len(second) * self.together))
        paired = list(zip(first[:number], fit[:number], strict=True))
        for fault in fit[:number]:
            second.remove(fault)
        bursts: list[Burst] = [*paired, *((fault,) for fault in first[number:] + second)]
        chance.shuffle(bursts)
        return bursts

    def _drawn(self, kinds: tuple[Fault, ...], chance: random.Random) -> list[Fault]:
        drawn = [fault for fault in kinds for _ in range(self.counts.get(fault, 0))]
        chance.shuffle(drawn)
        return drawn


def spread(faults: int) -> dict[Fault, int]:
    """Return so many faults, or a few more: each kind once at least, the others by their shares."""
    whole = sum(_SHARES.values())
    counts = Counter({fault: max(1, share * faults // whole) for fault, share in _SHARES.items()})
    for fault, _ in Counter(_SHARES).most_common():
        if counts.total() >= faults:
            break
        counts[fault] += 1
    return dict(counts)
