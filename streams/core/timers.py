"""What falls due by time: leases, delays, deadlines. Timers only cause steps; they carry no data of their own.

A timer is a heap entry (due, tie, item). Entries are never searched for: an item that no longer waits is
recognised when its entry comes up (`due_of`), so setting and ending a timer are O(log n).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Item = TypeVar("Item")

_SLACK = 1024


class Timers(Generic[Item]):
    """A heap of due times in ms. `due_of(item)` is the time an item waits for now, or None if it no longer does."""

    __slots__ = ("_due_of", "_heap")

    def __init__(self, due_of: Callable[[Item], int | None]) -> None:
        """Begin without timers."""
        self._due_of = due_of
        self._heap: list[tuple[int, int, Item]] = []

    def set(self, due: int, tie: int, item: Item) -> None:
        """Wait for `due`. `tie` orders items due at the same ms; (due, tie) must be unique to the item."""
        heappush(self._heap, (due, tie, item))

    def earliest(self) -> dict[int, int]:
        """Return the due time of the first entry of each tie, entries of items that no longer wait included."""
        return {tie: due for due, tie, _ in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)}

    def next_due(self) -> int | None:
        """Return the earliest time for which something waits."""
        heap = self._heap
        while heap:
            due, tie, item = heap[0]
            now_due = self._due_of(item)
            if now_due == due:
                return due
            heappop(heap)
            if now_due is not None and now_due > due:
                heappush(heap, (now_due, tie, item))  # it was put off
        return None

    def pop_due(self, now: int) -> Iterator[Item]:
        """Yield what is due at `now`, in order of (due, tie). The consumer must end or put off each item."""
        while (due := self.next_due()) is not None and due <= now:
            yield heappop(self._heap)[2]

    def tidy(self, live: int) -> None:
        """Drop dead entries if they outnumber the `live` ones, so that short runs with long leases don't pile up."""
        if len(self._heap) > 2 * live + _SLACK:
            kept = {}
            for _, tie, item in self._heap:
                due = self._due_of(item)
                if due is not None:
                    kept[due, tie] = item
            self._heap = [(due, tie, item) for (due, tie), item in kept.items()]
            heapify(self._heap)
