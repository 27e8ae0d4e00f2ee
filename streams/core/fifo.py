"""The FIFO inside a flow: runs in order of input position, retries at their old place.

Fresh runs, never dispatched, come in ascending position and are linked to one another: no object of its own is needed
for their order, which a flow that is known for years but idle would keep. What comes later than its position says (a
retry, a run that asked to start at a later time) may belong anywhere before them and waits in a heap beside them. A
linked run is taken out wherever it stands; one in the heap is only marked `ENDED` and skipped when it comes to the top:
O(1) now, O(log n) at most later.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from streams.core.runs import QUEUED, Run, RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLACK = 64  # dead entries that are not worth a clean-up


class Fifo:
    """Queued runs of one flow. `len()` counts the living."""

    __slots__ = ("_back", "_first", "_last", "_live", "tokens")

    def __init__(self) -> None:
        """Begin empty."""
        self._first: Run | None = None  # of those that are linked by `Run.before` and `Run.after`
        self._last: Run | None = None
        self._back: list[tuple[int, Run]] | None = None  # positions are unique, so two runs are never compared
        self._live = 0
        self.tokens = 0  # == sum of the estimates of the living

    def __len__(self) -> int:
        """Return the number of queued runs."""
        return self._live

    def __iter__(self) -> Iterator[Run]:
        """Yield the queued runs in no stated order."""
        run = self._first
        while run is not None:
            yield run
            run = run.after
        yield from (run for _, run in self._back or () if run.state is QUEUED)

    def put(self, run: Run) -> None:
        """Queue a run at the place its position gives it. Its state must be QUEUED."""
        self._live += 1
        self.tokens += run.estimate
        last = self._last
        if run.attempt or run.not_before_ms or (last is not None and run.position < last.position):
            if self._back is None:
                self._back = []
            heappush(self._back, (run.position, run))
            return
        if last is None:
            self._first = run
        else:
            last.after = run
            run.before = last
        self._last = run

    def head(self) -> Run | None:
        """Return the run that is next, or None."""
        first, back = self._first, self._back
        if back is None:
            return first
        while back and back[0][1].state is not QUEUED:
            heappop(back)
        if not back:
            self._back = None
            return first
        return back[0][1] if first is None or back[0][0] < first.position else first

    def last_fresh(self) -> Run | None:
        """Return the last of the runs that were never dispatched, those excepted that asked to start at a later time.

        It depends on the runs alone, not on the order in which their delays have ended: the same after a load.
        """
        return self._last

    def drop(self, run: Run, state: RunState) -> None:
        """Take a queued run out, wherever it stands, and give it its new state."""
        run.state = state
        self._live -= 1
        self.tokens -= run.estimate
        if run is self._first or run.before is not None:
            self._unlink(run)
            return
        back = self._back
        assert back is not None, "a queued run that is not linked has come back"
        if back[0][1] is run:
            heappop(back)
        elif len(back) > 2 * self._live + _SLACK:  # or a tenant that cancels all its retries could fill the memory
            back = [entry for entry in back if entry[1].state is QUEUED]
            heapify(back)
            self._back = back

    def _unlink(self, run: Run) -> None:
        before, after = run.before, run.after
        if before is None:
            self._first = after
        else:
            before.after = after
            run.before = None
        if after is None:
            self._last = before
        else:
            after.before = before
            run.after = None
