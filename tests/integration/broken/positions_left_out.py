"""A scheduler that is broken on purpose: a step's transaction does not say how far its inputs reach.

As where positions are the affair of a consumer group, which commits them some time, or not.
"""

import sys
from dataclasses import replace

from streams.app.__main__ import main
from streams.app.step import Stepper
from streams.rows import PositionsRecord


def _row(self: Stepper, positions: PositionsRecord) -> tuple[bytes, bytes]:
    return _rightly(self, replace(positions, applied={}))


_rightly = Stepper._row
Stepper._row = _row  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main())
