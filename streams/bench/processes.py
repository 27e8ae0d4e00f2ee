"""Child processes of a benchmark: started, waited for, ended, and never left behind."""

from __future__ import annotations

import http.client
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.errors import FairstreamError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STOP_S: Final = 10.0
_ASK_S: Final = 1.0


@contextmanager
def child(module_and_arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run `python -m MODULE ARGUMENTS` while the block runs, and end it afterwards, by force if need be."""
    process = subprocess.Popen([sys.executable, "-m", *module_and_arguments])
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def finish(process: subprocess.Popen[bytes], deadline_s: float) -> None:
    """Wait until a child has ended well. Raises `FairstreamError` if it did not."""
    try:
        code = process.wait(deadline_s)
    except subprocess.TimeoutExpired as error:
        raise FairstreamError(f"{process.args!r} did not end within {deadline_s:g} s") from error
    if code != 0:
        raise FairstreamError(f"{process.args!r} ended with {code}; see its output above")


def wait_until_ready(process: subprocess.Popen[bytes], port: int, deadline_s: float) -> None:
    """Wait until the scheduler's /readyz on loopback says yes. Raises `TimeoutError`; `Unavailable` if it has ended."""

    def ready() -> bool:
        if process.poll() is not None:
            raise Unavailable(f"the scheduler ended with {process.returncode}; see its output above")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ASK_S)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    clock.wait_until(ready, deadline_s, what="the scheduler's readiness")
