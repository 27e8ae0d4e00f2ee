"""What goes wrong, how often, and how often it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

# Of a step that is being written: where it may be interrupted. Each stands for the moment after it.
POINTS: Final = ("begin", "row", "dispatch", "rejection", "forward", "journal", "positions")

# What may come at such a moment.
CRASH: Final = "crash"  # the owner is gone, its transaction stays open until the shard is fenced
ABORT: Final = "abort"  # the transaction fails, and the owner loads the shard again
PAUSE: Final = "pause"  # the owner sleeps, others take over and go on, and it goes on where it was
TIME_OUT: Final = "time-out"  # the broker ends the transaction, which took too long, and wants no more of this producer

# What may come at the commit.
UNHEARD: Final = "commit unheard"  # it was committed, and its owner is gone before it hears of that
UNSENT: Final = "commit unsent"  # everything was written, and nobody has committed it

# Of owners between their steps.
KILLED: Final = "process killed"
MOVED: Final = "shard moved"  # to another process; the former one does not know it yet: a zombie
KEPT: Final = "shard kept"  # through a rebalance: the owner proves by a commit that it still is the owner
REDELIVERED: Final = "input redelivered"  # records at or below the position come again
HELD_BACK: Final = "input held back"  # one topic's records come later than the other's
SET_BACK: Final = "clock behind"  # the owner's clock is behind that of the shard's last step
COMPACTED: Final = "topic compacted"  # of state and policies only the last of each key is left

FENCED: Final = "zombie fenced"  # a former owner tried to write, and could not

# Of the traffic.
ASKED_TWICE: Final = "request sent twice"
ASKED_LATE: Final = "request sent again later"
ASTRAY: Final = "record astray"  # on a partition that is not its tenant's
UNREADABLE: Final = "record unreadable"
CANCELLED: Final = "run cancelled"

# Of workers.
DIED: Final = "worker died"
TAKEN_TWICE: Final = "dispatch taken twice"
TOLD_TWICE: Final = "report sent twice"
TOLD_LATE: Final = "report late"  # after the lease
SILENT: Final = "revocation ignored"

# How often, of each time that it might happen. Of what interrupts a step: of each step that writes anything.
USUAL: Final[Mapping[str, float]] = {
    CRASH: 0.07,
    ABORT: 0.05,
    PAUSE: 0.08,
    TIME_OUT: 0.06,
    UNHEARD: 0.02,
    UNSENT: 0.02,
    KILLED: 0.01,
    MOVED: 0.02,
    KEPT: 0.02,
    REDELIVERED: 0.5,
    HELD_BACK: 0.2,
    COMPACTED: 0.05,
    ASKED_TWICE: 0.05,
    ASKED_LATE: 0.05,
    ASTRAY: 0.05,
    UNREADABLE: 0.03,
    CANCELLED: 0.2,
    DIED: 0.05,
    TAKEN_TWICE: 0.04,
    TOLD_TWICE: 0.06,
    TOLD_LATE: 0.05,
    SILENT: 0.5,
}

INTERRUPTIONS: Final = (CRASH, ABORT, PAUSE, TIME_OUT)
KINDS: Final = (
    *(f"{kind} after {point}" for kind in INTERRUPTIONS for point in POINTS),
    *(kind for kind in USUAL if kind not in INTERRUPTIONS),
    SET_BACK,  # comes by itself, since each process has a clock of its own
    FENCED,  # comes of zombies and of those that sleep
)


@dataclass
class Chances:
    """Draws for one run. While `calm`, nothing goes wrong."""

    random: Random
    rates: Mapping[str, float] = field(default_factory=lambda: USUAL)
    fired: Counter[str] = field(default_factory=Counter)
    calm: bool = False

    def fires(self, kind: str) -> bool:
        """Draw, and count what fired."""
        if self.draw(kind):
            self.fired[kind] += 1
            return True
        return False

    def draw(self, kind: str) -> bool:
        """Draw without counting: whether it fires is seen later."""
        return not self.calm and self.random.random() < self.rates[kind]
