"""A pool of slots on a virtual clock: plays arrivals against a scheduler and says when each run was served.

A run holds one slot for its duration. Nothing fails and nothing is preempted: what is compared is the order alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from streams.errors import ConfigError
from streams.simulate.workload import Arrival


class Start(NamedTuple):
    """A scheduler's decision: this run goes now."""

    arrival: Arrival
    charge: int  # tokens charged for it now; the true cost if the scheduler does not guess


class Scheduler(Protocol):
    """Who goes next. Called once for each moment at which something happens."""

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        """Take in what happened at `now_ms` and return what starts now: at most `free` runs.

        Each arrival is given once, in order, and is to be returned once, sooner or later, as long as slots fall free.
        """
        ...


class Served(NamedTuple):
    """One run from beginning to end. Times in ms from the beginning of the workload."""

    arrival: Arrival
    charge: int  # tokens charged when it was handed out
    decided_ms: int  # when it was handed out
    started_ms: int  # when its slot began to work; >= decided_ms
    ended_ms: int

    @property
    def wait_ms(self) -> int:
        """From the request to the beginning of the work."""
        return self.started_ms - self.arrival.at_ms


def play(arrivals: Sequence[Arrival], scheduler: Scheduler, *, slots: int, handover_ms: int = 0) -> tuple[Served, ...]:
    """Return every arrival as it was served, in the order of the decisions.

    Each decision takes `handover_ms` until its slot begins to work; the slot is held from the decision on. At each
    moment the ends come before the arrivals. Raises `ConfigError` for no slots, and `RuntimeError` if the scheduler
    starts what it may not or keeps runs back while everything else stands still.
    """
    if slots <= 0:
        raise ConfigError("must be positive", field="slots", value=slots)
    served: list[Served] = []
    working: list[tuple[int, int]] = []  # heap of (ended_ms, index in served)
    coming = 0  # index of the next arrival
    while coming < len(arrivals) or working:
        now = _next_moment(arrivals, coming, working)
        ended: list[Arrival] = []
        while working and working[0][0] == now:
            ended.append(served[heappop(working)[1]].arrival)
        first = coming
        while coming < len(arrivals) and arrivals[coming].at_ms == now:
            coming += 1
        free = slots - len(working)
        starts = scheduler.advance(now, arrivals[first:coming], ended, free)
        if len(starts) > free:
            raise RuntimeError(f"{type(scheduler).__name__} started {len(starts)} runs with {free} slots free")
        for start in starts:
            begins = now + handover_ms
            ends = begins + start.arrival.duration_ms
            heappush(working, (ends, len(served)))
            served.append(Served(start.arrival, start.charge, now, begins, ends))
    if len(served) != len(arrivals):
        raise RuntimeError(f"{type(scheduler).__name__} served {len(served)} of {len(arrivals)} runs")
    return tuple(served)


def _next_moment(arrivals: Sequence[Arrival], coming: int, working: list[tuple[int, int]]) -> int:
    if coming == len(arrivals):
        return working[0][0]
    if not working:
        return arrivals[coming].at_ms
    return min(arrivals[coming].at_ms, working[0][0])
