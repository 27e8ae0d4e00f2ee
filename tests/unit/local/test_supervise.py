"""The supervisor, with a harmless child in the broker's place."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from streams import clock
from streams.local import supervise

# Says that it is ready, then lives until it is told to end; "stubborn" does not listen.
CHILD = """
import signal, sys
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[2], "w").close()
signal.pause()
"""


@contextmanager
def supervised(tmp_path: Path, manner: str = "meek", remove: str = "") -> Iterator["subprocess.Popen[bytes]"]:
    """A supervisor whose child is ready."""
    ready = tmp_path / "ready"
    child = [sys.executable, "-c", CHILD, manner, str(ready)]
    command = [sys.executable, "-IS", supervise.__file__, str(os.getpid()), "0.5", remove, *child]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            clock.wait_until(ready.exists, 20, what="the child")
            yield process
        finally:
            process.kill()


def child_of(process: "subprocess.Popen[bytes]") -> psutil.Process:
    assert process.stdout is not None
    return psutil.Process(int(process.stdout.readline()))


@pytest.mark.parametrize(
    ("manner", "order", "status"),
    [("meek", b"T", 128 + 15), ("meek", b"K", 128 + 9), ("stubborn", b"T", 128 + 9), ("stubborn", b"K", 128 + 9)],
)
def test_orders_end_the_child(tmp_path: Path, manner: str, order: bytes, status: int) -> None:
    with supervised(tmp_path, manner) as process:
        child = child_of(process)
        assert process.stdin is not None
        process.stdin.write(order)
        assert process.wait(20) == status
        assert not child.is_running()


def test_a_closed_pipe_ends_the_child_and_keeps_chosen_data(tmp_path: Path) -> None:
    with supervised(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 128 + 15
    assert tmp_path.exists()


def test_a_closed_pipe_removes_temporary_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with supervised(tmp_path, "stubborn", remove=str(data)) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 128 + 9
    assert not data.exists()


def test_a_child_that_ends_of_itself_passes_its_status_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-IS",
        supervise.__file__,
        str(os.getpid()),
        "1",
        str(tmp_path / "x"),
        "sh",
        "-c",
        "exit 7",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(20) == 7


def test_another_parent_means_that_the_owner_is_gone(tmp_path: Path) -> None:
    """A sibling that inherited the pipe keeps it open after the owner's end."""
    with subprocess.Popen(
        [
            sys.executable,
            "-IS",
            supervise.__file__,
            "1",
            "0.5",
            "",
            sys.executable,
            "-c",
            CHILD,
            "meek",
            str(tmp_path / "r"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.wait(20) == 128 + 15
