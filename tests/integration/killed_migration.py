"""A migration that ends by SIGKILL at a named point: `python -m tests.integration.killed_migration ...`.

It dies when a step has come so far that the next thing it would do is the next transaction, or whatever follows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from unittest.mock import patch

from streams.admin.migration import writing
from streams.admin.migration.migrate import Migration
from streams.kafka import KafkaSettings
from tests.integration.deployment import Deployment

KILLED = -signal.SIGKILL
_BATCH = 100  # records of a transaction, so that every step has several


def killed(old: Deployment, new: Deployment, *, step: str, done: int) -> int:
    """Run a migration in a process of its own that dies in `step` once so much is done; return its exit code."""
    arguments = [old.servers, old.prefix, new.prefix, str(new.shards), step, str(done)]
    command = [sys.executable, "-m", "tests.integration.killed_migration", *arguments]
    return subprocess.run(command, timeout=120, check=False).returncode


def main(arguments: list[str]) -> None:
    servers, old, new, shards, step, done = arguments

    def progress(now: str, so_far: int, _of: int | None) -> None:
        if now == step and so_far >= int(done):
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(writing, "RECORDS", _BATCH):
        before, after = (KafkaSettings(servers=servers, prefix=prefix) for prefix in (old, new))
        Migration(before, after, int(shards), progress=progress).run()


if __name__ == "__main__":
    main(sys.argv[1:])
