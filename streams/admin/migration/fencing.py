"""Stops schedulers: the new shards are not served yet, the old ones no more. Each is fenced, and then told why.

A scheduler's own transactional id is taken over for that, so one that is running can't write any more, and what stands
in its state partition then is all. The reason is written under the same id. From then on nobody writes there but this
migration, whose id is another: a scheduler that starts in spite of it fences nobody but its like, and finds the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams import clock
from streams.admin.migration.sides import pair
from streams.admin.migration.writing import Writer
from streams.errors import OwnershipLost
from streams.transactions import Out

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.admin.migration.sides import Side
    from streams.rows import FillingRecord, MovedRecord

_TRIES: Final = 10  # a scheduler that has lost a shard may take it back once or twice, and then has to load it
_PAUSE_S: Final = 0.2


def take_and_tell(side: Side, shard: int, reason: Callable[[], MovedRecord | FillingRecord | None]) -> None:
    """Fence a shard of `side`, and write into its state partition what `reason` returns; None: nothing.

    `reason` is asked once nobody else can write there, so it may read; but not for long: a scheduler that has lost a
    shard takes it back within a second or so. Then it is asked again.

    Raises as `Writer.write` does.
    """
    for left in reversed(range(_TRIES)):
        writer = Writer(side.kafka, side.transactional_id(shard))
        writer.fence()
        row = reason()
        if row is None:
            return
        key, value = pair(shard, row)
        try:
            writer.write([Out(side.names.state, shard, key, value)])
        except OwnershipLost:
            if not left:
                raise
            clock.pause(_PAUSE_S)
        else:
            return
