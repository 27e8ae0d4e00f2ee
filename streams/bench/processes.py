"""The scheduler and the load of a benchmark: other processes, waited for, ended with us, and never left behind."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from streams import clock
from streams.errors import FairstreamError
from streams.local.ports import LOOPBACK

if TYPE_CHECKING:
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


def wait_until_ready(scheduler: OwnedProcess, port: int, deadline_s: float) -> None:
    """Wait until the scheduler's /readyz on loopback says yes. Raises `FairstreamError` if it never does."""
    watch_start(scheduler, port, deadline_s)


class Start(NamedTuple):
    """How a scheduler came to serve: seconds since it was begun to be watched."""

    assigned_s: float  # until then the group had given it no shards
    served_s: float  # it had taken over all of them
    silence_s: float  # the longest that its event loop took to answer in between


def watch_start(scheduler: OwnedProcess, port: int, deadline_s: float) -> Start:
    """Wait as `wait_until_ready` does, and say how it went. Its page is asked for every 50 ms."""
    begun = assigned = clock.monotonic()
    answered: float | None = None
    silence = 0.0

    def ready() -> bool:
        nonlocal assigned, answered, silence
        if scheduler.exit_status is not None:
            raise FairstreamError(f"the scheduler ended with exit status {scheduler.exit_status}; see its output above")
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ASK_S)
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            serves = orjson.loads(response.read())["shards"]
        except OSError:
            if answered is None:  # the page is up before the group is joined
                assigned = clock.monotonic()
            return False
        finally:
            connection.close()
        now = clock.monotonic()
        silence = max(silence, now - answered if answered is not None else 0.0)
        answered = now
        if not serves:
            assigned = now
        return response.status == http.HTTPStatus.OK

    try:
        clock.wait_until(ready, deadline_s, what="the scheduler's readiness")
    except TimeoutError as error:
        raise FairstreamError(str(error)) from error
    served = clock.monotonic()
    return Start(assigned - begun, served - begun, silence)
