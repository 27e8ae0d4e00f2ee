"""A worker as users have them, in a process of its own: `python -m tests.integration.faults.worker_process`.

It takes runs through the client library, spends some time on each, and reports what the run is worth (`tokens_of`);
some runs fail or are handed back at first. Each begin and end is written to a file at once, so that whoever kills the
worker can see what it was in the middle of.

    worker_process SERVERS PREFIX share|classic TRACE
"""

from __future__ import annotations

import asyncio
import logging
import sys
import zlib
from pathlib import Path
from typing import Final

from streams.client import HandBack, KafkaSettings, Run, TryAgain, Worker, WorkerSettings
from tests.integration.traffic import tokens_of

BEGUN: Final = "begun"
ENDED: Final = "ended"

_TURNS: Final = 4  # a run spends its tokens in so many parts
_LONG_S: Final = 2.5  # long enough to be killed in, and to need heartbeats
_SHORT_S: Final = 0.4  # at most


def seconds_of(run_id: str) -> float:
    """How long a run takes: one in twenty long, the others short."""
    number = zlib.crc32(run_id.encode())
    return _LONG_S if number % 20 == 0 else _SHORT_S * (number % 100) / 100


def main(servers: str, prefix: str, intake: str, trace: Path) -> None:
    """Serve until SIGTERM."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    assert intake in {"share", "classic"}, intake
    settings = WorkerSettings(
        concurrency=64, intake="share" if intake == "share" else "classic", drain_s=1.0, name=trace.stem
    )
    worker = Worker(KafkaSettings(servers=servers, prefix=prefix), settings)
    with trace.open("ab", buffering=0) as file:

        def note(what: str, run: Run) -> None:
            file.write(f"{what} {run.tenant}/{run.run_id}/{run.attempt}\n".encode())

        @worker.run()
        async def spend(run: Run) -> None:
            note(BEGUN, run)
            try:
                await _work(run)
            finally:
                note(ENDED, run)

        worker.serve()


async def _work(run: Run) -> None:
    number = zlib.crc32(run.run_id.encode())
    if run.attempt == 1 and number % 17 == 0:
        raise HandBack
    tokens = tokens_of(run.run_id, run.attempt)
    for turn in range(1, _TURNS + 1):
        await asyncio.sleep(seconds_of(run.run_id) / _TURNS)
        run.spent(tokens * turn // _TURNS - (run.tokens or 0))
    if run.attempt == 1 and number % 13 == 0:
        raise TryAgain("as often at first")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
