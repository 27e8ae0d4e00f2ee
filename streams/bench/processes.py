"""The scheduler and the load of a benchmark: other processes, waited for, ended with us, and never left behind."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final

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

    def ready() -> bool:
        if scheduler.exit_status is not None:
            raise FairstreamError(f"the scheduler ended with exit status {scheduler.exit_status}; see its output above")
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_ASK_S)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    try:
        clock.wait_until(ready, deadline_s, what="the scheduler's readiness")
    except TimeoutError as error:
        raise FairstreamError(str(error)) from error
