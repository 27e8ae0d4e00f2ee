"""Where a shard's inputs and its journal stand: a row of the runtime's own, in the same transaction as the core's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from streams.core.records import Key, Record, key_of
from streams.rows.migration import FILLING, MOVED, FillingRecord, MovedRecord

POSITIONS: Final = "positions"  # (POSITIONS,)


@dataclass(slots=True)
class PositionsRecord:
    """The truth about what has been applied; a consumer group's committed offsets are only hints.

    Topics are named without the deployment's prefix.
    """

    epoch: int  # of the owner that wrote it
    applied: dict[str, int] = field(default_factory=dict)  # topic -> last offset applied; absent: none yet
    partitions: dict[str, int] = field(default_factory=dict)  # topic -> its count when the state began
    topics: dict[str, str] = field(default_factory=dict)  # topic -> Kafka's id of it; absent: not known then
    journal: str = ""  # `streams.wire.journal_digest` of the last journal record; "": none has been written
    core: int = 0  # version of the core that has worked out `state`; 0: of before there was one
    state: str = ""  # hash of the core's rows (`StateHash`) after the last step


RuntimeRow = PositionsRecord | MovedRecord | FillingRecord  # of which the core knows nothing
Row = Record | RuntimeRow


def row_key(row: Row) -> Key:
    """Return the key of a row, of the core's or the runtime's."""
    match row:
        case PositionsRecord():
            return (POSITIONS,)
        case MovedRecord():
            return (MOVED,)
        case FillingRecord():
            return (FILLING,)
    return key_of(row)
