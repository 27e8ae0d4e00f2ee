"""Workers that are heard of too late."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify

from tests.recorded import Recorder


class Silent(Recorder):
    """Some workers are heard of when their attempts have been given up long ago."""

    def hand_out(self, dispatches: Sequence[tuple[bytes, bytes]]) -> None:
        known = {told for _, told, _, _ in self._due}
        super().hand_out(dispatches)
        for index, (due_ms, told, given, status) in enumerate(self._due):
            if told not in known and given.seq % 3 == 0:  # later than its lease, but in time for its account
                self._due[index] = (due_ms + 3_500, told, given, status)
        heapify(self._due)
