"""A scheduler that is broken on purpose: it fences nobody.

Each process writes under a transactional id of its own, so Kafka lets a former owner go on for as long as it likes.
"""

import os
import sys

from streams.app.__main__ import main
from streams.app.settings import Settings


def _transactional_id(self: Settings, shard: int) -> str:
    return f"{_rightly(self, shard)}-{os.getpid()}"


_rightly = Settings.transactional_id
Settings.transactional_id = _transactional_id  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main())
