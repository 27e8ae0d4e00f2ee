"""First come, first served, in a window as a policy states it."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from streams.simulate.scheduler import Scheduler, Start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.simulate.deficit_round_robin import Stated
    from streams.simulate.workload import Arrival


class WindowedFifo(Scheduler):
    """One queue for the whole pool. Of a policy it knows the window; tokens count there at their true cost.

    A run that is not to begin before a moment joins the queue then. Classes, deadlines and limits it does not know.
    """

    def __init__(self, policies: Sequence[Stated]) -> None:
        """`policies` in the order of their moments, the first at 0."""
        self._coming = deque(policies)
        self._window = self._coming.popleft().policy.window
        self._queue: deque[Arrival] = deque()
        self._delayed: list[tuple[int, int, Arrival]] = []  # heap: from when, tiebreaker
        self._put_off = 0
        self._runs = self._tokens = 0  # in flight

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        while self._coming and self._coming[0].at_ms <= now_ms:
            self._window = self._coming.popleft().policy.window
        self._runs -= len(ended)
        self._tokens -= sum(arrival.tokens for arrival in ended)
        self._join(now_ms, arrived)
        starts: list[Start] = []
        while self._queue and len(starts) < free and self._fits(self._queue[0]):
            taken = self._queue.popleft()
            self._runs += 1
            self._tokens += taken.tokens
            starts.append(Start(taken, taken.tokens))
        return starts

    def next_timer_ms(self) -> int | None:
        moments = [self._delayed[0][0]] if self._delayed else []
        moments += [self._coming[0].at_ms] if self._coming else []
        return min(moments, default=None)

    def _join(self, now_ms: int, arrived: Sequence[Arrival]) -> None:
        for arrival in arrived:
            if arrival.not_before_ms is not None and arrival.not_before_ms > now_ms:
                self._put_off += 1
                heappush(self._delayed, (arrival.not_before_ms, self._put_off, arrival))
            else:
                self._queue.append(arrival)
        while self._delayed and self._delayed[0][0] <= now_ms:
            self._queue.append(heappop(self._delayed)[2])

    def _fits(self, arrival: Arrival) -> bool:
        """As `streams.core.window`: a run that is larger than all of it goes alone."""
        if self._window.runs is not None and self._runs >= self._window.runs:
            return False
        return self._window.tokens is None or self._tokens + arrival.tokens <= self._window.tokens or not self._runs
