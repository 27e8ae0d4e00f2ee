"""Scheduler processes under test: started, watched, killed, and never left behind."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams import clock
from streams.local.ports import LOOPBACK, free_ports

READY_S: Final = 60.0
STOP_S: Final = 5.0
SESSION_S: Final = 2.0  # short, so that a killed scheduler is missed soon; the test broker allows one second
_ASK_S: Final = 1.0


class ChildProcess:
    """One `python -m MODULE ARGUMENTS`, with a log in `folder`. Killed at the end of its `with` block."""

    def __init__(self, folder: Path, name: str, module: str, *arguments: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", module, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()
        if error is not None and self.log.exists():
            error.add_note(f"--- {self.name} ---\n" + "".join(self.log.read_text().splitlines(keepends=True)[-60:]))

    def start(self) -> None:
        """Start it, for the first time or again."""
        self._start({})

    def _start(self, environment: Mapping[str, str]) -> None:
        assert not self.running, "it runs"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env={**os.environ, **environment}, stdout=log, stderr=log)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process as it was started last."""
        assert self._process is not None, "it was started"
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        assert self._process is not None, "it was started"
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was started"
        self._process.send_signal(number)

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM, and its exit code. Fails if it takes longer than it may."""
        self.send(signal.SIGTERM)
        assert self._process is not None, "it was started"
        return self._process.wait(STOP_S)


class SchedulerProcess(ChildProcess):
    """One `python -m streams.app`, or another module in its place."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        kafka: str,
        prefix: str,
        shards: int,
        module: str = "streams.app",
        **settings: object,
    ) -> None:
        """`settings` are those of `streams.app.settings`."""
        super().__init__(folder, name, module)
        self.port = free_ports(1)[0]
        self._settings = {
            "kafka": kafka,
            "prefix": prefix,
            "shards": shards,
            "web_port": self.port,
            "session_timeout_s": SESSION_S,
            **settings,
        }

    def start(self, **settings: object) -> None:
        """Start it, for the first time or again; `settings` hold for this time."""
        given: Mapping[str, object] = {**self._settings, **settings}
        self._start({f"FAIRSTREAM_{key.upper()}": str(value) for key, value in given.items() if value is not None})

    def wait_until_ready(self, shards: set[int] | None = None) -> None:
        """Wait until it serves what it was assigned, and those shards if named. It must not end meanwhile."""

        def ready() -> bool:
            code = self.poll()
            assert code is None, f"{self.name} ended with {code}"
            found = self.serving()
            return found is not None and (shards is None or found == shards)

        clock.wait_until(ready, READY_S, what=f"{self.name}: ready with shards {shards}")

    def serving(self) -> set[int] | None:
        """The shards it serves; None while it takes over or does not answer."""
        status, body = self.ask("/readyz")
        if status != http.HTTPStatus.OK:
            return None
        return {int(number) for number in body.partition("[")[2].partition("]")[0].split(",") if number.strip()}

    def ask(self, path: str) -> tuple[int | None, str]:
        """Status and body of one of its pages; None if it does not answer."""
        with closing(http.client.HTTPConnection(LOOPBACK, self.port, timeout=_ASK_S)) as connection:
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                return response.status, response.read().decode()
            except OSError:
                return None, ""
