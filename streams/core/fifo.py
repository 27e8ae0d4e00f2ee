"""The FIFO inside a flow: runs in order of input position, retries at their old place.

Fresh runs, never dispatched, come in ascending position and sit in a deque. What comes back (a retry, a delay that
is over) may belong anywhere before them and sits in a heap beside it. A run taken out in the middle is only marked
`ENDED`/`DELAYED` and skipped when it reaches the front: O(1) now, O(log n) at most later.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from streams.core.runs import Run, RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLACK = 64  # dead entries that are not worth a clean-up


class Fifo:
    """Queued runs of one flow. `len()` counts the living."""

    __slots__ = ("_back", "_fresh", "_live", "tokens")

    def __init__(self) -> None:
        """Begin empty."""
        self._fresh: deque[Run] = deque()
        self._back: list[tuple[int, Run]] = []  # positions are unique, so two runs are never compared
        self._live = 0
        self.tokens = 0  # == sum of the estimates of the living

    def __len__(self) -> int:
        """Return the number of queued runs."""
        return self._live

    def __iter__(self) -> Iterator[Run]:
        """Yield the queued runs in no stated order."""
        yield from (run for run in self._fresh if run.state is RunState.QUEUED)
        yield from (run for _, run in self._back if run.state is RunState.QUEUED)

    def put(self, run: Run) -> None:
        """Queue a run at the place its position gives it. Its state must be QUEUED."""
        self._live += 1
        self.tokens += run.estimate
        if not run.attempt and (not self._fresh or run.position > self._fresh[-1].position):
            self._fresh.append(run)
        else:
            heappush(self._back, (run.position, run))

    def head(self) -> Run | None:
        """Return the run that is next, or None."""
        fresh = self._fresh
        while fresh and fresh[0].state is not RunState.QUEUED:
            fresh.popleft()
        if not self._back:
            return fresh[0] if fresh else None
        back = self._back
        while back and back[0][1].state is not RunState.QUEUED:
            heappop(back)
        if not back:
            return fresh[0] if fresh else None
        return back[0][1] if not fresh or back[0][0] < fresh[0].position else fresh[0]

    def last_fresh(self) -> Run | None:
        """Return the last of the runs that were never dispatched, those excepted whose delay ended out of turn."""
        fresh = self._fresh
        while fresh and fresh[-1].state is not RunState.QUEUED:
            fresh.pop()
        return fresh[-1] if fresh else None

    def drop(self, run: Run, state: RunState) -> None:
        """Take a queued run out, wherever it stands, and give it its new state."""
        run.state = state
        self._live -= 1
        self.tokens -= run.estimate
        fresh, back = self._fresh, self._back
        if fresh and fresh[0] is run:
            fresh.popleft()
        elif back and back[0][1] is run:
            heappop(back)
        elif len(fresh) + len(back) > 2 * self._live + _SLACK:
            self._sweep()

    def _sweep(self) -> None:
        """Forget the dead, so that a tenant that cancels all it submits can't fill the memory."""
        self._fresh = deque(run for run in self._fresh if run.state is RunState.QUEUED)
        self._back = [entry for entry in self._back if entry[1].state is RunState.QUEUED]
        heapify(self._back)
