"""Checkpoints: the rows of a shard at a step, from which a replay can begin when older input has been deleted.

What the state topic holds, read as committed to its end, is the state after the last step that is committed there: one
owner writes at a time, in one transaction a step. So a checkpoint is a copy of it, taken beside the steps. That it is
the state of that step, the journal proves: see `proving`.
"""

from streams.audit.checkpoints.proving import prove
from streams.audit.checkpoints.reading import (
    TOPIC,
    Checkpoint,
    before_first_step,
    feet,
    latest_before,
    open_checkpoint,
    positions_of,
)
from streams.audit.checkpoints.standing import of_state
from streams.audit.checkpoints.taking import Copy

__all__ = [
    "TOPIC",
    "Checkpoint",
    "Copy",
    "before_first_step",
    "feet",
    "latest_before",
    "of_state",
    "open_checkpoint",
    "positions_of",
    "prove",
]
