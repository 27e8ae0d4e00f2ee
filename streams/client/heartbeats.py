"""Keeps attempts alive: a thread of its own, so that a function that is busy (or hangs) cannot stop it.

Only native code that holds Python's global lock for seconds can.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.client.verdicts import DEADLINE

if TYPE_CHECKING:
    from streams.client.attempts import Attempts
    from streams.client.run import Run

# The attempts are looked through this often. A lease of a second still gets its heartbeats at a third and two
# thirds; ten thousand attempts cost about one per cent of a core.
TICK_S: Final = 0.1

# Two heartbeats may be lost, or be late by a third of the lease, before the attempt counts as lost.
BEATS_PER_LEASE: Final = 3


class Heartbeats:
    """Sends a heartbeat for each attempt every third of its lease, and notices deadlines."""

    def __init__(
        self,
        attempts: Attempts,
        *,
        beat: Callable[[Run], None],
        abandon: Callable[[Run, str], None],
        died: Callable[[BaseException], None],
    ) -> None:
        """`abandon` is called once for a run whose deadline has passed; `died` if the thread ends by an error."""
        self._attempts = attempts
        self._beat = beat
        self._abandon = abandon
        self._died = died
        self._stop = Event()
        self._thread = Thread(target=self._run, name="fairstream-heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the round it may be in."""
        self._stop.set()
        self._thread.join()

    def round(self, monotonic_s: float, now_ms: int) -> None:
        """Look at each attempt once."""
        for run in self._attempts.snapshot():
            if run.beat_at <= monotonic_s:
                run.beat_at = monotonic_s + beat_interval_s(run)
                self._beat(run)
            deadline = run.deadline_ms
            if deadline is not None and deadline <= now_ms and run.unwanted is None:
                self._abandon(run, DEADLINE)

    def _run(self) -> None:
        try:
            while not self._stop.wait(TICK_S):
                self.round(clock.monotonic(), clock.now_ms())
        except BaseException as error:  # noqa: BLE001 - whatever it is, a worker without heartbeats must stop
            self._died(error)


def beat_interval_s(run: Run) -> float:
    """Return the seconds between two heartbeats of a run."""
    return run.assignment.lease_ms / 1000 / BEATS_PER_LEASE
