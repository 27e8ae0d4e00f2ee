"""What a step took in: the records that its journal entry names. Each input partition is read forward, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.recording import Rec
from streams.audit.replay.divergence import LATER
from streams.errors import NotReplayable
from streams.intake import Reader, Source
from streams.intake.unread import BATCH, HEADERS, mark
from streams.wire import MAX_MESSAGE_BYTES, topic_names

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.intake import Intake
    from streams.wire import InputRange, JournalEntry

_WHY: Final = "no client can read it, as the journal says"


class Wrong(Exception):
    """The inputs are not what the journal says; raised between this module and the replay, which knows the place."""

    def __init__(self, field: str, recorded: str, found: str, note: str) -> None:
        super().__init__(field, recorded, found, note)
        self.field = field
        self.recorded = recorded
        self.found = found
        self.note = note


class _Batch(NamedTuple):
    source: Source
    records: Sequence[Rec]


class _Limits:
    """What the topics took then, as far as the journal says. See `streams.intake.Limits`."""

    largest_body: int | None = None

    def of(self, _topic: str) -> int:
        return MAX_MESSAGE_BYTES  # what was too large to be forwarded the journal names (`unread`)


class Inputs:
    """The inputs of one shard."""

    def __init__(self, recording: Recording, shard: int, applied: Mapping[str, int]) -> None:
        """`applied` are the offsets of the last ones before the replay begins, by topic."""
        self._recording: Final = recording
        self._shard: Final = shard
        self._applied: Final = dict(applied)
        self._limits: Final = _Limits()
        self._reader: Final = Reader(topic_names(recording.prefix), shard, recording.shards, self._limits)
        self._partitions: Final = {source.value: _Partition(recording, source, shard) for source in Source}

    def of(self, entry: JournalEntry) -> Intake:
        """Read what a step took in as it was read then. To be asked step after step.

        Raises:
            Wrong: it is not there, or does not follow what the step before took in.
            NotReplayable: it has been deleted.
        """
        batches = []
        for range_ in entry.inputs:
            partition = self._partitions.get(range_.topic)
            if partition is None:
                continue  # a policy, which the entry has itself
            self._check_follows(entry, range_)
            records = partition.take(range_.first, range_.last)
            for unread in entry.unread:
                if unread.topic == range_.topic:
                    records = _marked(records, unread)
            if not records or records[-1].offset != range_.last:
                self._refuse(entry, range_, records)
            batches.append(_Batch(partition.source, records))
        self._limits.largest_body = entry.largest_body
        before = {**self._applied, **{range_.topic: range_.first - 1 for range_ in entry.inputs}}
        self._applied.update((range_.topic, range_.last) for range_ in entry.inputs)
        return self._reader.read(batches, before)

    def _check_follows(self, entry: JournalEntry, range_: InputRange) -> None:
        """A range begins where the last one ended; only a new owner may find that what follows has expired.

        Then it is there no more. If it is, it was passed over.
        """
        topic, first, last = range_
        next_ = self._applied.get(topic, -1) + 1
        if first > last or first < next_ or (first > next_ and not entry.takeover):
            note = "the inputs of a step follow those of the step before"
            raise Wrong(f"inputs.{topic}", f"offsets {first} to {last}", f"from offset {next_} on", note)
        passed = next(iter(self._recording.read(topic, self._shard, next_, first)), None) if first > next_ else None
        if passed is not None:
            note = "a record was passed over: no step has taken it in, and it has not been deleted"
            raise Wrong(f"inputs.{topic}", f"offsets {first} to {last}", f"from offset {passed.offset} on", note)

    def _refuse(self, entry: JournalEntry, range_: InputRange, records: Sequence[Rec]) -> None:
        topic, first, last = range_
        low, _ = self._recording.bounds(topic, self._shard)
        if low > first:
            raise NotReplayable(
                f"shard {self._shard}, step {entry.step}: it took in offsets {first} to {last} of the {topic}, and "
                f"those before {low} have been deleted; {LATER}"
            )
        found = f"up to {records[-1].offset}" if records else "none of them"
        note = "an input of the step is not there"
        raise Wrong(f"inputs.{topic}", f"offsets {first} to {last}", found, note)


class _Partition:
    """One of the input partitions."""

    def __init__(self, recording: Recording, source: Source, shard: int) -> None:
        self.source: Final = source
        self._recording: Final = recording
        self._shard: Final = shard
        self._records: Iterator[Rec] | None = None
        self._next: Rec | None = None  # read, and not taken yet

    def take(self, first: int, last: int) -> list[Rec]:
        """Return the records of a range. To be called with rising ranges."""
        if self._records is None:
            self._open(first)
        found = self._upto(first, last)
        if self._next is None and (not found or found[-1].offset < last):
            # Read to its end, it may have grown since: a deployment that is served goes on while it is replayed.
            self._open(found[-1].offset + 1 if found else first)
            found += self._upto(first, last)
        return found

    def _open(self, start: int) -> None:
        self._records = self._recording.read(self.source.value, self._shard, start)
        self._next = next(self._records, None)

    def _upto(self, first: int, last: int) -> list[Rec]:
        assert self._records is not None, "it is open"
        found: list[Rec] = []
        record = self._next
        while record is not None and record.offset <= last:
            if record.offset >= first:
                found.append(record)
            record = next(self._records, None)
        self._next = record
        return found


def _marked(records: Sequence[Rec], unread: InputRange) -> list[Rec]:
    """Put a mark where the scheduler's consumer put one: on one record, or for what was left of a batch."""
    _, first, last = unread
    within = [record for record in records if first <= record.offset <= last]
    if first == last and within:
        marked = within[0]._replace(headers=mark(HEADERS, _WHY))
    else:
        marked = Rec(last, 0, None, None, mark(BATCH, _WHY))
    before = [record for record in records if record.offset < first]
    return [*before, marked, *(record for record in records if record.offset > last)]
