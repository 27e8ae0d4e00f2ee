"""The scheduler process under test: `python -m streams.bench.scheduler full|bare SERVERS PREFIX SHARDS WEB_PORT`."""

from __future__ import annotations

import logging
import sys

from streams.app.main import run_scheduler
from streams.app.settings import Settings
from streams.bench.bare import BareShard
from streams.core.shard import Shard


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    kind, servers, prefix, shards, port = arguments
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    settings = Settings(kafka=servers, prefix=prefix, shards=int(shards), web_port=int(port))
    return run_scheduler(settings, BareShard if kind == "bare" else Shard)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
