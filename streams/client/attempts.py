"""The attempts that this worker has in progress: how many there may be, and who may end each one, once."""

from __future__ import annotations

from threading import Condition
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams.client.run import Run, RunKey


class Attempts:
    """A set of runs with a limit. Thread-safe.

    Whoever gets True from `end` reports the run; everybody else who thinks it has ended is late.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit  # > 0
        self._runs: dict[RunKey, Run] = {}
        self._changed = Condition()  # guards _runs; notified when one ends

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: Run) -> bool:
        """Add a run and return True; or return False, and change nothing, if that attempt is already here."""
        with self._changed:
            if run.key in self._runs:
                return False
            self._runs[run.key] = run
            return True

    def end(self, run: Run) -> bool:
        """Remove a run and return True; or return False if it is not here (any more)."""
        with self._changed:
            if self._runs.get(run.key) is not run:
                return False
            del self._runs[run.key]
            self._changed.notify_all()
            return True

    def find(self, key: RunKey) -> Run | None:
        """Return the run of that attempt, if it is here."""
        with self._changed:
            return self._runs.get(key)

    def snapshot(self) -> list[Run]:
        """Return the runs in progress, oldest first."""
        with self._changed:
            return list(self._runs.values())

    def wait_for_room(self, timeout_s: float) -> int:
        """Wait until another run fits and return how many do; 0 if none does within `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._runs) < self._limit, timeout_s)
            return max(0, self._limit - len(self._runs))

    def wait_until_none(self, timeout_s: float) -> bool:
        """Wait until no run is in progress; return False if some are after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._runs, timeout_s)
