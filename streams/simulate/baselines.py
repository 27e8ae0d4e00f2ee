"""What ours is compared with, behind the same protocol.

All have the same window, and find out that a run was lost when its lease runs out, as ours does: they differ in the
order alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from streams.core.policy import Leases
from streams.simulate.scheduler import Lost, Scheduler, Start
from streams.simulate.workload import Arrival

LEASE_MS: Final = Leases().lease_ms


class Baseline(Scheduler):
    """A queue of some kind; a run that was lost goes back to its front. Costs are known exactly."""

    def __init__(self, *, lease_ms: int = LEASE_MS) -> None:
        """`lease_ms`: how long a lost run stays unnoticed."""
        self._lease_ms = lease_ms
        self._silent: deque[tuple[int, Arrival]] = deque()  # lost, with the end of its lease

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del ended
        due = [arrival for _, arrival in takewhile(lambda silent: silent[0] <= now_ms, self._silent)]
        for arrival in reversed(due):
            self._silent.popleft()
            self._put_back(arrival)
        for arrival in arrived:
            self._put(arrival)
        starts: list[Start] = []
        while len(starts) < free - len(self._silent):
            taken = self._take()
            if taken is None:
                break
            starts.append(Start(taken, taken.tokens))
        return starts

    def lose(self, now_ms: int, lost: Sequence[Lost]) -> None:
        self._silent.extend((now_ms + self._lease_ms, each.arrival) for each in lost)

    def next_timer_ms(self) -> int | None:
        return self._silent[0][0] if self._silent else None

    @abstractmethod
    def _put(self, arrival: Arrival) -> None:
        """Queue a run behind those of its queue."""

    @abstractmethod
    def _put_back(self, arrival: Arrival) -> None:
        """Queue a run before those of its queue."""

    @abstractmethod
    def _take(self) -> Arrival | None:
        """Return who is next; None if nothing is queued."""


class Fifo(Baseline):
    """First come, first served: what a plain Kafka topic does."""

    def __init__(self, *, lease_ms: int = LEASE_MS) -> None:
        super().__init__(lease_ms=lease_ms)
        self._queue: deque[Arrival] = deque()

    def _put(self, arrival: Arrival) -> None:
        self._queue.append(arrival)

    def _put_back(self, arrival: Arrival) -> None:
        self._queue.appendleft(arrival)

    def _take(self) -> Arrival | None:
        return self._queue.popleft() if self._queue else None


class RoundRobin(Baseline):
    """One run of each tenant in turn, whatever it costs and whatever its weight: fair in runs, not in tokens."""

    def __init__(self, *, lease_ms: int = LEASE_MS) -> None:
        super().__init__(lease_ms=lease_ms)
        self._queues: dict[str, deque[Arrival]] = {}
        self._turns: deque[str] = deque()  # tenants with something queued

    def _put(self, arrival: Arrival) -> None:
        self._queue_of(arrival).append(arrival)

    def _put_back(self, arrival: Arrival) -> None:
        self._queue_of(arrival).appendleft(arrival)

    def _queue_of(self, arrival: Arrival) -> deque[Arrival]:
        queue = self._queues.setdefault(arrival.tenant, deque())
        if not queue:
            self._turns.append(arrival.tenant)
        return queue

    def _take(self) -> Arrival | None:
        if not self._turns:
            return None
        tenant = self._turns.popleft()
        queue = self._queues[tenant]
        taken = queue.popleft()
        if queue:
            self._turns.append(tenant)
        return taken


class NoRestraint(Baseline):
    """Whoever has most queued goes first: nothing restrains the greedy.

    The control of the fairness tests: a check that passes it checks nothing.
    """

    def __init__(self, *, lease_ms: int = LEASE_MS) -> None:
        super().__init__(lease_ms=lease_ms)
        self._queues: dict[str, deque[Arrival]] = {}

    def _put(self, arrival: Arrival) -> None:
        self._queues.setdefault(arrival.tenant, deque()).append(arrival)

    def _put_back(self, arrival: Arrival) -> None:
        self._queues.setdefault(arrival.tenant, deque()).appendleft(arrival)

    def _take(self) -> Arrival | None:
        longest = max(self._queues.items(), key=lambda item: (len(item[1]), item[0]), default=None)
        return longest[1].popleft() if longest is not None and longest[1] else None
