"""The scheduler and the load of a benchmark: other processes, waited for, ended with us, and never left behind."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.errors import FairstreamError
from streams.local.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.local.owned import OwnedProcess

_ASK_S: Final = 1.0


def finish(process: OwnedProcess, what: str, deadline_s: float) -> None:
    """Wait until it has ended well. Raises `FairstreamError` if it has not, or is not done at the deadline."""
    try:
        clock.wait_until(lambda: process.exit_status is not None, deadline_s, what=f"the end of {what}")
    except TimeoutError as error:
        raise FairstreamError(str(error)) from error
    if process.exit_status != 0:
        raise FairstreamError(f"{what} ended with exit status {process.exit_status}; see its output above")


def check_alive(scheduler: OwnedProcess) -> None:
    """Raise `FairstreamError` if the scheduler has ended."""
    if scheduler.exit_status is not None:
        raise FairstreamError(f"the scheduler ended with exit status {scheduler.exit_status}; see its output above")


def wait_until_ready(scheduler: OwnedProcess, port: int, deadline_s: float) -> None:
    """Wait until the scheduler's /readyz on loopback says yes. Raises `FairstreamError` if it never does."""
    watch_start(scheduler, port, deadline_s)


@dataclass(frozen=True, slots=True)
class Start:
    """How a scheduler came to serve: seconds since it was begun to be watched."""

    assigned_s: float  # the group had given it its shards
    served_s: float  # it had taken over all of them
    silence_s: float  # the longest that its event loop took to answer


def watch_start(
    scheduler: OwnedProcess, port: int, deadline_s: float, *, assigned: Callable[[], bool] = lambda: True
) -> Start:
    """Wait as `wait_until_ready` does, and say how it went. `assigned` asks whether the group has come to rest."""
    begun = clock.monotonic()
    assigned_s = answered_s = None
    silence_s = 0.0

    def ready() -> bool:
        nonlocal assigned_s, answered_s, silence_s
        check_alive(scheduler)
        if assigned_s is None and assigned():
            assigned_s = clock.monotonic() - begun
        status = _ask(port)
        if status is None:
            return False
        now_s = clock.monotonic() - begun
        silence_s = max(silence_s, now_s - answered_s if answered_s is not None else 0.0)
        answered_s = now_s
        return status == http.HTTPStatus.OK

    try:
        clock.wait_until(ready, deadline_s, what="the scheduler's readiness")
    except TimeoutError as error:
        raise FairstreamError(str(error)) from error
    assert assigned_s is not None
    assert answered_s is not None
    return Start(assigned_s, answered_s, silence_s)


def _ask(port: int) -> int | None:
    """Return the status of /readyz, None if it does not answer."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ASK_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
