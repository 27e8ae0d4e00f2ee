"""A scheduler process that lives as long as this one: it ends with its owner, also when the owner is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams.local import supervise

_GRACE_S: Final = 10  # the scheduler promises 5
_END_S: Final = 20.0  # after that the supervisor has killed it


class SchedulerProcess:
    """`fairstream scheduler` with these arguments, under the supervisor that the local Kafka has too.

    Its output goes to our standard error. Use as a context manager.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._command = [
            sys.executable,
            "-IS",
            str(Path(supervise.__file__)),
            str(os.getpid()),
            str(_GRACE_S),
            "",  # nothing to remove
            sys.executable,
            "-m",
            "streams.cli",
            "scheduler",
            *arguments,
        ]
        self._supervisor: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        # A session of its own: Ctrl-C reaches the owner alone, which ends things in its order.
        self._supervisor = subprocess.Popen(
            self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._supervisor.poll() if self._supervisor is not None else None

    def stop(self) -> None:
        """SIGTERM, and wait for its end."""
        assert self._supervisor is not None
        assert self._supervisor.stdin is not None
        if self._supervisor.poll() is None:
            with contextlib.suppress(BrokenPipeError):  # it may just have ended by itself
                self._supervisor.stdin.write(b"T")
        self._supervisor.wait(_END_S)
        self._supervisor.stdin.close()
