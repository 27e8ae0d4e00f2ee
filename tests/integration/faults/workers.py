"""Worker processes under test, and what they are in the middle of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.integration.faults.worker_process import BEGUN, ENDED
from tests.integration.processes import ChildProcess


class WorkerProcess(ChildProcess):
    """One `tests.integration.faults.worker_process`."""

    def __init__(self, folder: Path, name: str, *, kafka: str, prefix: str, intake: str) -> None:
        self.trace = folder / f"{name}.trace"
        super().__init__(
            folder, name, "tests.integration.faults.worker_process", kafka, prefix, intake, str(self.trace)
        )

    def start(self) -> None:
        """Start it, for the first time or again, in the middle of nothing."""
        self.trace.unlink(missing_ok=True)
        super().start()

    def in_progress(self) -> list[str]:
        """The attempts that it has begun and not ended, as tenant/run_id/attempt; also after its death."""
        if not self.trace.exists():
            return []
        open_: Counter[str] = Counter()
        for line in self.trace.read_text(encoding="utf-8").splitlines():
            what, _, attempt = line.partition(" ")
            open_[attempt] += {BEGUN: 1, ENDED: -1}[what]
        return sorted(+open_)
