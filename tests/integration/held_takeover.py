"""A scheduler whose takeovers wait before each fence, or each load, until a file is there.

HELD_AT=fence HELD_UNTIL=/tmp/go python -m tests.integration.held_takeover
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from streams import clock
from streams.app.__main__ import main
from streams.app.loading import StateTopic
from streams.app.transaction import KafkaWriter

HELD: Final = "held before the "


def _held(what: str, rightly: Callable[..., Any]) -> Callable[..., Any]:
    def hold(*arguments: Any) -> Any:
        sys.stderr.write(f"{HELD}{what}\n")
        clock.wait_until(Path(os.environ["HELD_UNTIL"]).exists, 60, what="the test to let go")
        return rightly(*arguments)

    return hold


if __name__ == "__main__":
    if os.environ["HELD_AT"] == "fence":
        KafkaWriter.fence = _held("fence", KafkaWriter.fence)  # type: ignore[method-assign]
    else:
        StateTopic.load = _held("load", StateTopic.load)  # type: ignore[method-assign]
    sys.exit(main())
