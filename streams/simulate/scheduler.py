"""What the simulated pool asks of a scheduler, ours or any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from streams.simulate.workload import Arrival


class Start(NamedTuple):
    """A scheduler's decision: this run goes now."""

    arrival: Arrival
    charge: int  # tokens charged for it now; the true cost if the scheduler does not guess


class Refusal(NamedTuple):
    """A scheduler's decision: this run will not be served (any more)."""

    arrival: Arrival
    at_ms: int
    reason: str


class Lost(NamedTuple):
    """An attempt whose slot vanished before it was done. Times in ms from the beginning of the workload."""

    arrival: Arrival
    charge: int  # tokens charged when it was handed out
    decided_ms: int
    started_ms: int
    lost_ms: int

    @property
    def tokens(self) -> int:
        """What had been worked off, to no avail."""
        done_ms = max(0, self.lost_ms - self.started_ms)
        return self.arrival.tokens * done_ms // self.arrival.duration_ms


class Scheduler(ABC):
    """Who goes next."""

    @abstractmethod
    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        """Take in what happened at `now_ms` and return what starts now: at most `free` runs.

        Called once for each moment at which something happens. Each arrival is given once, in order, and is to be
        returned once, or once more whenever it was lost, sooner or later, as long as slots fall free.
        """

    def lose(self, now_ms: int, lost: Sequence[Lost]) -> None:
        """Take in that these attempts went silent at `now_ms`; `advance` for that moment follows.

        A scheduler cannot know it before a lease has run out: until then each of them keeps its place in the window.
        Raises `NotImplementedError` for one that is not made for outages; without them nobody calls it.
        """
        raise NotImplementedError(f"{type(self).__name__} knows nothing of lost runs")  # else they were forgotten

    def next_timer_ms(self) -> int | None:
        """Return when `advance` is to be called even if nothing happens; None: never."""
        return None

    def take_refusals(self) -> Sequence[Refusal]:
        """Return what was refused since this was last asked. Whoever refuses nothing need not care."""
        return ()
