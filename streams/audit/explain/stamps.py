"""When a worker wrote a report: the time of its record, which the replay has no use for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streams.audit.recording import Rec, Recording

_FAR: Final = 50_000  # offsets: to begin anew there takes less than to read on to there


class Stamps:
    """Tells the time of a completion by its offset; to be asked with rising offsets, of one shard.

    It reads on from where it is, for each beginning costs a connection: a long run has thousands of heartbeats.
    """

    def __init__(self, recording: Recording, shard: int) -> None:
        self._recording: Final = recording
        self._shard: Final = shard
        self._records: Iterator[Rec] = iter(())
        self._next: Rec | None = None  # read, and not passed yet

    def __call__(self, offset: int) -> int | None:
        """Return the record's time in ms; None: it is not there, or has no time."""
        record = self._next
        if record is None or offset - record.offset > _FAR:
            self._records = self._recording.read("completions", self._shard, offset)
            record = next(self._records, None)
        while record is not None and record.offset < offset:
            record = next(self._records, None)
        self._next = record
        if record is None or record.offset != offset or record.timestamp <= 0:
            return None
        return record.timestamp
