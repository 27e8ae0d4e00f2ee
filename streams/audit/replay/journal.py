"""The journal of a shard, step after step: each record the one that follows, and of a core that can be asked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NoReturn

from streams.audit.replay.divergence import LATER, Divergence, Stopped
from streams.core.version import VERSION
from streams.errors import BadRecord, NotReplayable
from streams.wire import decode_journal, journal_digest

if TYPE_CHECKING:
    from streams.audit.recording import Rec, Recording
    from streams.audit.replay.beginning import Begun
    from streams.wire import JournalEntry


class Journal:
    """Iterate over it once, for the entries that come after the beginning."""

    def __init__(self, recording: Recording, shard: int, begun: Begun) -> None:
        self.offset = -1  # of the record read last
        self._recording: Final = recording
        self._shard: Final = shard
        self._begun: Final = begun
        self._step = begun.step
        self._previous = begun.previous

    @property
    def digest(self) -> str:
        """Of the last record that was in its place; "": there was none, or of before there was a chain."""
        return self._previous

    def __iter__(self) -> Iterator[JournalEntry]:
        """Yield entry after entry.

        Raises:
            Stopped: a record is not the one that follows.
            NotReplayable: the journal begins too late, or another core has decided.
        """
        for record in self._recording.read("journal", self._shard, self._begun.offset):
            self.offset = record.offset
            entry = self._read(record)
            if self._is_known(entry):
                continue
            self._check(entry)
            self._step += 1
            self._previous = journal_digest(record.value or b"")
            yield entry

    def _read(self, record: Rec) -> JournalEntry:
        try:
            entry = decode_journal(record.value)
        except BadRecord as error:
            self._stop(error.field or "value", error.value, "a record of the journal", str(error))
        if entry.shard != self._shard:
            self._stop("shard", entry.shard, self._shard, "the record is another shard's")
        return entry

    def _is_known(self, entry: JournalEntry) -> bool:
        """Whether the beginning knows of the step: the journal is read from a little before it."""
        return entry.step <= self._begun.step == self._step

    def _check(self, entry: JournalEntry) -> None:
        expected = self._step + 1
        if entry.step != expected:
            self._refuse_deleted(entry)
            note = "records of the journal are missing" if entry.step > expected else "the record stands here again"
            self._stop("step", entry.step, expected, note)
        if entry.previous != self._previous:
            note = "the record before this one is not the one that it was written after: altered or exchanged"
            self._stop("previous", entry.previous, self._previous, note)
        self._check_version(entry)

    def _refuse_deleted(self, entry: JournalEntry) -> None:
        """Raise `NotReplayable` if the journal begins after the beginning of the replay."""
        first, _ = self._recording.bounds("journal", self._shard)
        if self._step == self._begun.step and first > self._begun.offset:
            raise NotReplayable(
                f"shard {self._shard}: the journal begins with step {entry.step}, the replay with step "
                f"{self._step + 1}, and what was between has been deleted; {LATER}"
            )

    def _check_version(self, entry: JournalEntry) -> None:
        if entry.core == VERSION:
            return
        where = f"shard {self._shard}, step {entry.step}"
        if entry.core is None:
            raise NotReplayable(
                f"{where}: its journal record is of a fairstream that did not yet write down all that a replay needs; "
                f"{LATER}"
            )
        raise NotReplayable(
            f"{where}: decided by version {entry.core} of the core, and this is version {VERSION}: replay it with a "
            f"fairstream of that version; with this one, {LATER}"
        )

    def _stop(self, field: str, recorded: object, replayed: object, note: str) -> NoReturn:
        raise Stopped(Divergence(self._shard, self._step + 1, self.offset, field, recorded, replayed, note))
