"""The state of a shard as it stands in a recording, as a checkpoint that nobody had to write.

In an exported directory it is the state as it stood at that time, kept where only the auditor can change it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streams.audit.checkpoints.reading import TOPIC, Checkpoint, open_checkpoint
from streams.audit.checkpoints.taking import Copy
from streams.audit.recording import MemoryRecording, Rec
from streams.rows.checkpoint import encode_part

if TYPE_CHECKING:
    from streams.audit.recording import Recording


def of_state(recording: Recording, shard: int) -> Checkpoint | None:
    """Return what the state topic holds at its end; None: nothing. It is in memory, twice.

    Raises `ConfigError` if a migration is filling it, `StateUnreadable` if the row of the shard itself is none.
    """
    state = list(recording.read("state", shard))
    if not state:
        return None
    copy = Copy("state", shard, begun_ms=0, state_end=state[-1].offset + 1, journal_end=0)
    values = [encode_part(copy.head()), *copy.chunks((record.key or b"", record.value) for record in state)]
    held = [Rec(offset, 0, None, value) for offset, value in enumerate(values)]
    taken = MemoryRecording(recording.prefix, recording.shards, {(TOPIC, shard): held})
    return replace(open_checkpoint(taken, len(values), copy.foot(0)), offset=-1)
