"""The inputs that a step names, as far as the topics still have them, read as the scheduler read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.intake import Reader, Source
from streams.wire import topic_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streams.audit.recording import Rec, Recording
    from streams.core.inputs import Cancel, Completion, Submit
    from streams.wire import InputRange, JournalEntry


@dataclass(slots=True)
class Inputs:
    """What one step took in, in the order of the topics."""

    completions: Sequence[Completion]
    requests: Sequence[Submit | Cancel]
    times: Mapping[int, int]  # of the completions: offset -> the record's timestamp, ms since the epoch
    unreadable: int  # requests that were set aside
    cut: bool  # whether some of it is no longer there


@dataclass(slots=True)
class _Batch:
    """Shaped as `streams.intake.InputBatch`."""

    source: Source
    records: Sequence[Rec]


class InputReader:
    """Reads what the steps of one shard took in. The steps must come in their order."""

    def __init__(self, recording: Recording, shard: int) -> None:
        self._recording: Final = recording
        self._shard: Final = shard
        self._reader: Final = Reader(topic_names(recording.prefix), shard, recording.shards)
        self._rest: Final[dict[str, Iterator[Rec]]] = {}
        self._next: Final[dict[str, Rec | None]] = {}

    def read(self, entry: JournalEntry) -> Inputs:
        """Return what a step took in."""
        records: dict[Source, list[Rec]] = {source: [] for source in Source}
        cut = False
        for range_ in entry.inputs:
            if range_.topic in records:
                found = records[Source(range_.topic)] = list(self._between(range_))
                cut = cut or not found or found[-1].offset != range_.last
        batches = [
            _Batch(source, [each for each in own if not _unread(entry, source, each.offset)])
            for source, own in records.items()
        ]
        intake = self._reader.read(batches, {})
        set_aside = sum(each.source is Source.REQUESTS for each in intake.unreadable)
        return Inputs(
            intake.completions,
            intake.requests,
            {each.offset: each.timestamp for each in records[Source.COMPLETIONS]},
            set_aside + sum(each.topic == Source.REQUESTS for each in entry.unread),
            cut,
        )

    def _between(self, range_: InputRange) -> Iterator[Rec]:
        topic = range_.topic
        if topic not in self._rest:
            self._rest[topic] = self._recording.read(topic, self._shard, range_.first)
            self._next[topic] = next(self._rest[topic], None)
        while (record := self._next[topic]) is not None and record.offset <= range_.last:
            if record.offset >= range_.first:
                yield record
            self._next[topic] = next(self._rest[topic], None)


def _unread(entry: JournalEntry, source: Source, offset: int) -> bool:
    """Tell whether no client can read that record: it was set aside, whatever is found there."""
    return any(each.topic == source and each.first <= offset <= each.last for each in entry.unread)
