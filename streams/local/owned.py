"""A process of ours that lives as long as this one: it ends with its owner, also when the owner is killed."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams.local import supervise

_GRACE_S: Final = 10  # a scheduler promises 5; then the supervisor kills it


class OwnedProcess:
    """`fairstream ARGUMENTS`, under the supervisor that the local Kafka has too. Use as a context manager.

    Its output goes to `log`, or to our standard error. `module` is run instead of the command line.
    """

    def __init__(self, arguments: list[str], log: Path | None = None, *, module: str = "streams.cli") -> None:
        self._log = log
        self._command = [sys.executable, "-IS", str(Path(supervise.__file__)), str(os.getpid()), str(_GRACE_S)]
        self._command += ["", sys.executable, "-m", module, *arguments]  # "": nothing to remove
        self._supervisor: subprocess.Popen[bytes] | None = None
        self.pid = 0  # of the process itself, not of its supervisor; known once it is started

    def start(self) -> None:
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(self._log.open("ab")) if self._log is not None else None
            # A session of its own: Ctrl-C reaches the owner alone, which ends things in its order.
            self._supervisor = subprocess.Popen(
                self._command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._supervisor.stdout is not None
        with self._supervisor.stdout as answer:
            self.pid = int(answer.readline() or 0)

    def stop(self) -> None:
        """SIGTERM, and wait for its end; SIGKILL if that takes longer than 10 s."""
        assert self._supervisor is not None
        assert self._supervisor.stdin is not None
        if self._supervisor.poll() is None:
            with contextlib.suppress(BrokenPipeError):  # it may just have ended by itself
                self._supervisor.stdin.write(b"T")
        self._supervisor.wait()
        self._supervisor.stdin.close()

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        assert self._supervisor is not None
        return self._supervisor.poll()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
