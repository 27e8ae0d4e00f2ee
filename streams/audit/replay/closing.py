"""What closes the chain: the positions row, written with each step, holds the digest of the last journal record.

Without it a journal of which the last records are gone would be one that ended earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.audit.replay.divergence import Divergence
from streams.errors import NotReplayable, StateUnreadable
from streams.rows import POSITIONS, PositionsRecord, decode, encode_key
from streams.wire import journal_digest

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.audit.replay.shard_replay import ShardReplay

_NEAR: Final = 64  # offsets: as a rule it is the last record of the state topic


class Closing:
    """Of one shard; to be made before the journal is read, since steps may go on meanwhile."""

    def __init__(self, recording: Recording, shard: int) -> None:
        self._recording: Final = recording
        self._shard: Final = shard
        self._there: Final = shard < recording.partitions("state")  # an export that ends earlier has no state
        self._digest: Final = _digest(recording, shard) if self._there else ""
        self._met = False

    def follow(self, replay: ShardReplay) -> None:
        """Take in how far the journal has been read: before the first step, and after each."""
        self._met |= replay.digest == self._digest

    def hold(self, replay: ShardReplay, step: int) -> Divergence | None:
        """Hold the journal's end against the row; `step` is the last one there. None: nothing contradicts it.

        Raises `NotReplayable`: the journal's last records have been deleted, with all before them.
        """
        if not self._there or (self._met if self._digest else not replay.digest):
            return None
        later = self._recording.read("journal", self._shard, replay.offset + 1)
        if any(journal_digest(record.value or b"") == self._digest for record in later):
            return None  # a transaction's end may show in one topic a moment later than in another
        first, end = self._recording.bounds("journal", self._shard)
        if self._digest and first == end > 0:
            raise NotReplayable(
                f"shard {self._shard}: its steps after step {step} have been deleted from the journal, which is empty"
            )
        row = self._digest or "there is none"
        note = "the journal ends before the record with which the positions row in the state topic closes it"
        return Divergence(self._shard, step + 1, replay.offset, "journal", replay.digest or "nothing", row, note)


def _digest(recording: Recording, shard: int) -> str:
    """Return the digest in the positions row; "" if there is no row, or none that can be read."""
    key = encode_key(shard, (POSITIONS,))
    first, stop = recording.bounds("state", shard)
    length = _NEAR
    while stop > first:
        start = max(first, stop - length)
        values = [record.value for record in recording.read("state", shard, start, stop) if record.key == key]
        if values:
            return _of(values[-1])
        stop, length = start, 2 * length
    return ""


def _of(value: bytes | None) -> str:
    if value is None:
        return ""
    try:
        row = decode((POSITIONS,), value)
    except StateUnreadable:
        return ""
    return row.journal if isinstance(row, PositionsRecord) else ""
