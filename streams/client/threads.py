"""Runs plain functions, one thread each."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

from streams.client.verdicts import Outcome, judge_error, judge_result

if TYPE_CHECKING:
    from streams.client.functions import Plain
    from streams.client.run import Run


class Threads:
    """A pool that grows to the number of runs in progress, at most `limit`.

    Its threads are daemons: a function that heeds nothing must not keep a drained worker's process alive, which a
    `ThreadPoolExecutor` would.
    """

    def __init__(self, limit: int, ended: Callable[[Run, Outcome], None]) -> None:
        self._limit = limit
        self._ended = ended
        self._work: SimpleQueue[tuple[Run, Plain] | None] = SimpleQueue()
        self._lock = Lock()  # guards the two counts
        self._threads = 0
        self._idle = 0  # threads waiting for work that nobody has been counted on for

    def start(self, run: Run, function: Plain) -> None:
        """Run `function(run)` in a thread, and say how it ended."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._limit:
                self._threads += 1
                Thread(target=self._serve, name=f"fairstream-run-{self._threads}", daemon=True).start()
        self._work.put((run, function))

    def close(self) -> None:
        """Let each thread end once its run has."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            run, function = work
            outcome = _call(run, function)
            with self._lock:  # before the report: its slot is free from then on, and may be filled at once
                self._idle += 1
            self._ended(run, outcome)


def _call(run: Run, function: Plain) -> Outcome:
    try:
        return judge_result(run, function(run))
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it ends the run, not the worker
        return judge_error(run, error)
