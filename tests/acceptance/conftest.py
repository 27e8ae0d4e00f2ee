"""The real command line in subprocesses, against what one `fairstream up` has brought up for all of these tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

START_S: Final = 180.0  # the first start on a machine fetches Kafka
STOP_S: Final = 30.0
COMMAND_S: Final = 60.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is an acceptance test."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.acceptance)
            item.add_marker(pytest.mark.integration)


class Done(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `fairstream` as a person would, with Kafka's address in the environment."""

    def __init__(self, **environment: str) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}

    def run(self, *arguments: str, stdin: str = "") -> Done:
        """Run a command to its end."""
        done = subprocess.run(
            self._command(arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            env=self._environment,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that goes on; its remarks and errors go to this test's own standard error."""
        return subprocess.Popen(self._command(arguments), stdout=subprocess.PIPE, text=True, env=self._environment)

    @staticmethod
    def _command(arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "streams.cli", *arguments]


@pytest.fixture
def alone() -> Shell:
    """A shell that knows of no Kafka: nobody listens at this address."""
    return Shell(FAIRSTREAM_KAFKA="127.0.0.1:1")


@pytest.fixture(scope="session")
def up() -> Iterator[Shell]:
    """A shell that knows the Kafka of a running `fairstream up`, which must end well on SIGTERM."""
    process = Shell().start("up", "--json", "--shards", "2")
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"`fairstream up` ended with exit status {process.wait(STOP_S)}"
            yield Shell(FAIRSTREAM_KAFKA=json.loads(line)["kafka"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_S) == 0
        finally:
            process.kill()
