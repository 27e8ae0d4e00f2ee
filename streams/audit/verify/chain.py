"""The journal by itself: each record ties itself to the one before, steps follow each other, time goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.errors import BadRecord
from streams.wire import decode_journal, journal_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.audit.recording import Rec
    from streams.audit.verify.findings import Findings
    from streams.rows import PositionsRecord
    from streams.wire import JournalEntry

_INPUTS: Final = ("completions", "requests")


class Chain:
    """Of one shard."""

    def __init__(self, shard: int, findings: Findings) -> None:
        self._shard: Final = shard
        self._findings: Final = findings
        self.last: JournalEntry | None = None
        self.digest = ""  # of the last record; "": none was read
        self._before = ""  # of the last one that was read, if it could be
        self._ends: Final[dict[str, int]] = {}  # by topic: the last offset applied
        self._closed_at: int | None = None  # the step whose record the positions row closes the chain with

    def follow(self, records: Iterator[Rec], closing: str) -> Iterator[tuple[Rec, JournalEntry, bool]]:
        """Yield each record that can be read, and whether nothing is missing before it.

        `closing` is the digest in the positions row; "" if there is none.
        """
        whole = True
        for record in records:
            self._findings.looked_at["steps"] += 1
            digest = journal_digest(record.value or b"")
            try:
                entry = decode_journal(record.value)
            except BadRecord as error:
                step = None if self.last is None else self.last.step + 1
                self._wrong("chain", step, record.offset, f"the record cannot be read: {error}")
                self.digest, whole = digest, False
                continue
            if record.key != str(self._shard).encode() or entry.shard != self._shard:
                key = record.key
                self._wrong(
                    "chain", entry.step, record.offset, f"key {key!r} and shard {entry.shard} are another shard's"
                )
            again = self.last is not None and entry.step <= self.last.step
            linked = self._link(record, entry)
            if digest == closing:
                self._closed_at = entry.step
            self.digest = digest
            if not again:  # else it has been followed, or its place is gone
                yield record, entry, linked and whole
                self.last, whole = entry, True

    def close(self, positions: PositionsRecord | None, *, at_rest: bool, deleted: bool) -> None:
        """Hold the end against the positions row. `at_rest`: nothing was written while it was read.

        `deleted`: the journal has had records. If none is left, nothing is known of its end.
        """
        last = self.last
        closing = "" if positions is None else positions.journal
        if at_rest and not closing and last is not None and last.core is not None:
            self._wrong("chain", last.step, None, "there is no positions row that closes the chain", topic="state")
        if at_rest and closing and not self.digest and not deleted:
            self._wrong("chain", None, None, "the positions row closes a chain, and there is no record of it")
        if positions is None or not closing or not self.digest:
            return
        self._findings.looked_at["chains closed by the positions row"] += 1
        end = None if last is None else last.step
        if at_rest and positions.journal != self.digest:
            where = "no record here" if self._closed_at is None else f"that of step {self._closed_at}"
            sentence = f"the positions row closes the chain with {where}; the last record is that of step {end}"
            self._wrong("chain", end, None, sentence, topic="state")
        if last is None or not at_rest:
            return
        if positions.epoch < last.epoch:
            sentence = f"the positions are of epoch {positions.epoch}, the journal of {last.epoch}"
            self._wrong("steps", end, None, sentence, topic="state")
        for topic, offset in self._ends.items():
            if positions.applied.get(topic, -1) != offset and topic in _INPUTS:
                sentence = f"{topic} were applied to {offset}, the positions say {positions.applied.get(topic, -1)}"
                self._wrong("inputs", end, None, sentence, topic="state")

    def _link(self, record: Rec, entry: JournalEntry) -> bool:
        """Hold a record against the one before; tell whether nothing is missing between them."""
        before, step, offset = self.last, entry.step, record.offset
        if before is None and not self.digest:
            self._ranges(entry, offset, follows=False)
            return self._first(entry, offset)
        linked = True
        # A chain begins with the first record that has one: the positions had no digest to go on from.
        begins = before is not None and before.core is None and not entry.previous
        if entry.core is not None and entry.previous != self.digest and not begins:
            named = f"{entry.previous[:12]}…" if entry.previous else "none"
            sentence = f"it names {named} as the record before; that one's digest is {self.digest[:12]}…"
            self._wrong("chain", step, offset, sentence)
        if before is None:
            self._ranges(entry, offset, follows=False)
            return False
        if step != before.step + 1:
            self._wrong("steps", step, offset, f"step {step} follows step {before.step}")
            if step <= before.step:
                return False
            linked = False
            self._ends.clear()  # what is missing may have taken in anything
        if entry.epoch < before.epoch:
            self._wrong("steps", step, offset, f"it is of epoch {entry.epoch}, the one before of {before.epoch}")
        if entry.now_ms < before.now_ms:
            self._wrong("steps", step, offset, f"its time is {entry.now_ms} ms, that of the one before {before.now_ms}")
        if entry.takeover != (entry.epoch != before.epoch):
            epochs = f"epoch {before.epoch} before, {entry.epoch} now"
            self._wrong("steps", step, offset, f"takeover is {entry.takeover}: {epochs}")
        if entry.core is None and before.core is not None:
            self._wrong("chain", step, offset, "it names no record before it, as those before do")
        self._ranges(entry, offset, follows=linked)
        return linked

    def _first(self, entry: JournalEntry, offset: int) -> bool:
        if entry.step != 1:
            return False  # what came before it was deleted in its time
        if entry.previous:
            self._wrong("chain", 1, offset, f"the first step names {entry.previous[:12]}… as the record before")
        if not entry.takeover:
            self._wrong("steps", 1, offset, "the first step is no takeover")
        return True

    def _ranges(self, entry: JournalEntry, offset: int, *, follows: bool) -> None:
        """The inputs of each topic follow each other without gap or overlap."""
        for each in entry.inputs:
            self._findings.looked_at["ranges of inputs"] += 1
            end = self._ends.get(each.topic)
            if each.last < each.first:
                self._wrong("inputs", entry.step, offset, f"{each.topic} from {each.first} to {each.last}")
            if each.topic in _INPUTS and follows and end is not None and each.first != end + 1:
                # A new owner goes on where the topic begins, if what lay between was deleted unread.
                if not (entry.takeover and each.first > end):
                    self._wrong("inputs", entry.step, offset, f"{each.topic} from {each.first} on follow {end}")
            elif each.topic not in _INPUTS and end is not None and each.first <= end:
                self._wrong("inputs", entry.step, offset, f"{each.topic} {each.first} was applied after {end}")
            self._ends[each.topic] = each.last

    def _wrong(self, check: str, step: int | None, offset: int | None, sentence: str, topic: str = "journal") -> None:
        self._findings.add(check, self._shard, sentence, step=step, topic=topic, offset=offset)
