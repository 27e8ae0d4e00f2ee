"""What a migration to another number of shards leaves in a state partition, for whoever reads it: see `streams.admin`.

Each is in force as long as its row is there: a scheduler that finds one does not serve the shard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MOVED: Final = "moved"  # (MOVED,)
FILLING: Final = "filling"  # (FILLING,)


@dataclass(slots=True)
class MovedRecord:
    """The shard has moved, for good: what its rows say is served elsewhere."""

    prefix: str  # of the topics that it has moved to
    shards: int  # how many there are
    swept: dict[str, int] = field(default_factory=dict)  # topic -> offset of the last input that was copied there


@dataclass(slots=True)
class FillingRecord:
    """The shard is being filled: its rows are not all there yet."""

    prefix: str  # of the topics that they come from
    shards: int  # how many there are
