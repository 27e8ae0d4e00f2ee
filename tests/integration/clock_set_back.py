"""A scheduler whose wall clock is set back by an hour while it serves."""

import sys
from typing import Final

from streams import clock
from streams.app.__main__ import main

SET_BACK: Final = "the clock has been set back"

_AFTER_S: Final = 10.0
_HOUR_MS: Final = 3_600_000


class _Clock:
    def __init__(self) -> None:
        self._rightly = clock.now_ms
        self._begun = clock.monotonic()
        self._told = False

    def now_ms(self) -> int:
        if clock.monotonic() - self._begun < _AFTER_S:
            return self._rightly()
        if not self._told:
            self._told = True
            sys.stderr.write(f"{SET_BACK}\n")
        return self._rightly() - _HOUR_MS


if __name__ == "__main__":
    clock.now_ms = _Clock().now_ms
    sys.exit(main())
