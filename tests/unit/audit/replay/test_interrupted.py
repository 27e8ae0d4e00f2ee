"""Ctrl-C, which a terminal tells to all of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams.clock import wait_until

EXAMPLE = Path(__file__).parents[3] / "data" / "audit_example"
COMMAND = "from streams.cli.entry import main; main()"


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_an_interrupted_replay_says_no_more(processes: int) -> None:
    """So many that it has begun: one keeps track of what they share, the others replay."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "audit", "replay", "--from", EXAMPLE, "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: len(children.read_text().split()) >= processes, 30, 0.01, what="the processes that replay")
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "replaying 2 shards…\n")
