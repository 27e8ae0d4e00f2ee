"""Proves a checkpoint: its rows have the hash that the journal gives for the state after its step.

Whoever alters a checkpoint can make its own digests right again, but not those in the journal, each of whose records
holds the digest of the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core import VERSION
from streams.errors import BadRecord, CheckpointWrong
from streams.rows import StateHash, canonical, encode_key, row_key
from streams.wire import decode_journal, journal_digest

if TYPE_CHECKING:
    from streams.audit.checkpoints.reading import Checkpoint
    from streams.audit.recording import Recording
    from streams.wire import JournalEntry

_JOURNAL: Final = "journal"
_NEAR: Final = 16  # offsets: between the last record of the journal and its end stand a marker, and aborted ones


def state_of(checkpoint: Checkpoint) -> str:
    """Return the hash of its rows, in the forms of this version. Raises `CheckpointWrong` if one is none."""
    state = StateHash()
    for record in checkpoint.records():
        key = encode_key(checkpoint.shard, row_key(record))
        state.put(key, canonical(record, checkpoint.rows[key]))
    return state.value


def prove(recording: Recording, checkpoint: Checkpoint) -> bool:
    """Hold a checkpoint against the journal's record of its step.

    Return whether that tells. It does not if the record has been deleted, if it gives no hash, or one of another
    version of the core, or if there is none, as after a migration: then the next step that is replayed tells.

    Raises `CheckpointWrong`: the hash of the rows is another, or the journal's record is not the one that it knew.
    """
    found = _entry(recording, checkpoint)
    if found is None:
        return False
    entry, digest = found
    positions = checkpoint.positions
    if positions is not None and positions.journal and positions.journal != digest:
        raise CheckpointWrong(
            f"{checkpoint}: the journal's record of that step has the digest {digest}, it had {positions.journal}"
        )
    if entry.core != VERSION:
        return False
    state = state_of(checkpoint)
    if state != entry.state:
        raise CheckpointWrong(f"{checkpoint}: its rows have the hash {state}, the journal says {entry.state}")
    return True


def _entry(recording: Recording, checkpoint: Checkpoint) -> tuple[JournalEntry, str] | None:
    """Return the journal's record of a step, and its digest. It is near to where the journal ended at that time."""
    shard, step = checkpoint.shard, checkpoint.step
    if not step:
        return None
    first, end = recording.bounds(_JOURNAL, shard)
    start, length = max(first, min(checkpoint.foot.journal_end, end)), _NEAR
    while True:
        start = max(first, start - length)
        length *= 2
        for record in recording.read(_JOURNAL, shard, start):
            try:
                entry = decode_journal(record.value)
            except BadRecord:
                continue  # whoever verifies the journal finds it
            if entry.step == step:
                return entry, journal_digest(record.value or b"")
            if entry.step > step:
                break
        if start == first:
            return None
