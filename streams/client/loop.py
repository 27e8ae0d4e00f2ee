"""Runs coroutine functions, all on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Final

from streams.client.verdicts import Outcome, judge_error, judge_result

if TYPE_CHECKING:
    from streams.client.functions import Async
    from streams.client.run import Run, RunKey

# For functions that were cancelled to clean up; one that does not is left where it is.
_CANCEL_S: Final = 4.0


class Loop:
    """Any number of runs at once; each is one asyncio task.

    A function that blocks holds up the other runs of this loop, but not their heartbeats.
    """

    def __init__(self, ended: Callable[[Run, Outcome], None]) -> None:
        self._ended = ended
        self._loop = asyncio.new_event_loop()
        self._inbox: deque[tuple[Run, Async]] = deque()
        self._woken = False  # a call of _take_in is already on its way, so one system call serves many runs
        self._tasks: dict[RunKey, asyncio.Task[Outcome]] = {}  # touched by the loop's thread only
        self._cancelled: set[RunKey] = set()  # those of them that were; touched by the loop's thread only
        self._closing = False  # touched by the loop's thread only
        self._thread = Thread(target=self._serve, name="fairstream-loop", daemon=True)
        self._thread.start()

    def start(self, run: Run, function: Async) -> None:
        """Await `function(run)` on the loop, and say how it ended."""
        self._inbox.append((run, function))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._take_in)

    def cancel(self, run: Run) -> None:
        """Cancel the run's task, if it has one (still).

        Once, however often this is called: a run is revoked by whoever hears of it first, then by the others, by its
        deadline and by `close`. A second cancellation would break off the cleaning up that the first one began.
        """
        self._loop.call_soon_threadsafe(self._cancel, run.key)

    def close(self) -> None:
        """Cancel what is left and was not cancelled before; the loop ends with its last run.

        Waits 4 s for that. A function that heeds no cancellation goes on in the loop's thread, which is a daemon.
        """
        self._loop.call_soon_threadsafe(self._close)
        self._thread.join(_CANCEL_S)

    # --- on the loop's thread

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _take_in(self) -> None:
        # Before the inbox is emptied: a run that is put in from here on brings its own call.
        self._woken = False
        while self._inbox:
            run, function = self._inbox.popleft()
            task = self._loop.create_task(_call(run, function))
            self._tasks[run.key] = task
            task.add_done_callback(partial(self._done, run))

    def _done(self, run: Run, task: asyncio.Task[Outcome]) -> None:
        del self._tasks[run.key]
        self._cancelled.discard(run.key)
        # A task that is cancelled before its first step never enters `_call`.
        self._ended(run, judge_error(run, asyncio.CancelledError()) if task.cancelled() else task.result())
        self._stop_if_done()

    def _cancel(self, key: RunKey) -> None:
        task = self._tasks.get(key)
        # Not `task.cancelling()`: asyncio.timeout in the function counts there too, and takes its own back.
        if task is not None and key not in self._cancelled:
            self._cancelled.add(key)
            task.cancel()

    def _close(self) -> None:
        self._closing = True
        for key in self._tasks:
            self._cancel(key)
        self._stop_if_done()

    def _stop_if_done(self) -> None:
        # Never with a task left: asyncio logs an error for each that is dropped before it has ended.
        if self._closing and not self._tasks:
            self._loop.stop()


async def _call(run: Run, function: Async) -> Outcome:
    try:
        return judge_result(run, await function(run))
    except BaseException as error:  # noqa: BLE001 - also CancelledError, SystemExit: they end the run, not the loop
        return judge_error(run, error)
