"""The one module that names `time`.

The core gets its time as an argument; the shells ask here, so that tests and replays have one
place to look at, and a linter rule can forbid every other.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def now_ms() -> int:
    """Wall-clock time in milliseconds since the epoch. It may jump: never measure with it."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds on a clock that never goes back. For durations and deadlines only."""
    return time.monotonic()


def thread_s() -> float:
    """Seconds that this thread has computed. For what is measured while the machine does other things, too."""
    return time.thread_time()


def pause(seconds: float) -> None:
    """Do nothing for so long, before something outside is asked again. What is ours is waited for by `wait_until`."""
    time.sleep(seconds)


def wait_until(
    predicate: Callable[[], T],
    deadline_s: float,
    interval_s: float = 0.05,
    *,
    what: str = "the awaited condition",
) -> T:
    """Call `predicate` until it returns something true, and return that.

    Raises `TimeoutError` naming `what` once `deadline_s` seconds have passed; the predicate is
    called at least once, and once more after the deadline, so that a slow machine that slept
    through it is not told off wrongly. Exceptions of the predicate are the caller's.
    """
    end = time.monotonic() + deadline_s
    while True:
        late = time.monotonic() >= end
        result = predicate()
        if result:
            return result
        if late:
            raise TimeoutError(f"{what}: not within {deadline_s:g} s")
        time.sleep(min(interval_s, max(0.0, end - time.monotonic())))
