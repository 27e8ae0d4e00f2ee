"""The inputs that a step names, read from their topics: without the reader that the scheduler uses, to hold it to them.

One pass: each topic is read once, in step with the journal, so nothing is kept but the record to come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from streams.audit.recording import Rec, Recording
from streams.core.inputs import Cancel, Completion, Submit
from streams.errors import BadRecord
from streams.wire import FORWARDED, InputRange, JournalEntry, decode_completion, decode_request, partition_for

TOPICS: Final = ("completions", "requests")  # in the order in which a step applies them


@dataclass(slots=True)
class Inputs:
    """What one step has taken in."""

    completions: list[Completion] = field(default_factory=list)
    requests: list[Submit | Cancel] = field(default_factory=list)
    too_large: list[Submit] = field(default_factory=list)  # for the topics: refused before the core
    unusable: list[tuple[str, int]] = field(default_factory=list)  # topic, offset
    astray: list[tuple[str, Rec, int]] = field(default_factory=list)  # topic, record, its tenant's shard: another one
    copies: list[tuple[str, Rec, str]] = field(default_factory=list)  # topic, record, where it says it comes from
    passed: list[tuple[str, int]] = field(default_factory=list)  # topic, offset: records that no step has taken in
    deleted: bool = False  # some of what it took in is there no more
    missing: list[InputRange] = field(default_factory=list)  # ranges whose last record is not there, and should be


class InputReader:
    """Reads what the steps of one shard have taken in. The steps must come in order."""

    def __init__(self, recording: Recording, shard: int) -> None:
        self._recording: Final = recording
        self._shard: Final = shard
        self._first: Final = {topic: recording.bounds(topic, shard)[0] for topic in TOPICS}
        self._rest: Final[dict[str, Iterator[Rec]]] = {}
        self._next: Final[dict[str, Rec | None]] = {}
        self._lost: Final[set[str]] = set()  # of which steps that are missing may have taken in anything

    def lose_track(self) -> None:
        """Go on behind steps that are missing."""
        self._lost.update(TOPICS)

    def read(self, entry: JournalEntry) -> Inputs:
        """Return what the step has taken in, sorted by what becomes of it."""
        # One refusal for each of these, whatever another client makes of the records in it.
        found = Inputs(unusable=[(each.topic, each.last) for each in entry.unread])
        for each in entry.inputs:
            if each.topic not in TOPICS:
                continue
            found.deleted |= each.first < self._first[each.topic]
            self._begin(found, each)
            last = None
            for record in self._between(found, each):
                last = record.offset
                self._sort(found, each.topic, record, entry)
            if last != each.last and not any(
                each.topic == other.topic and each.last == other.last for other in entry.unread
            ):
                found.missing.append(each)
        return found

    def _begin(self, found: Inputs, given: InputRange) -> None:
        """Begin to read a topic with the first range of it; where nothing was deleted, nothing may lie before."""
        topic = given.topic
        if topic in self._rest:
            return
        self._rest[topic] = self._recording.read(topic, self._shard, given.first)
        self._next[topic] = next(self._rest[topic], None)
        if self._first[topic] == 0:
            before = next(iter(self._recording.read(topic, self._shard, 0, given.first)), None)
            found.passed += [(topic, before.offset)] if before is not None else []

    def _between(self, found: Inputs, given: InputRange) -> Iterator[Rec]:
        topic = given.topic
        while (record := self._next[topic]) is not None and record.offset <= given.last:
            if record.offset >= given.first:
                yield record
            elif topic not in self._lost:  # a new owner may go on behind what has expired, but that is there no more
                found.passed.append((topic, record.offset))
            self._next[topic] = next(self._rest[topic], None)
        self._lost.discard(topic)

    def _sort(self, found: Inputs, topic: str, record: Rec, entry: JournalEntry) -> None:
        if any(each.topic == topic and each.first <= record.offset <= each.last for each in entry.unread):
            return
        origin = next((value for name, value in record.headers if name == FORWARDED), None)
        if origin is not None:
            found.copies.append((topic, record, origin.decode(errors="replace")))
        try:
            given = _decode(topic, record)
        except BadRecord:
            found.unusable.append((topic, record.offset))
            return
        home = partition_for(given.tenant, self._recording.shards)
        if home != self._shard:
            if origin is None:
                found.astray.append((topic, record, home))
            else:
                found.unusable.append((topic, record.offset))
        elif isinstance(given, Completion):
            found.completions.append(given)
        elif isinstance(given, Submit) and entry.largest_body is not None and len(given.body) > entry.largest_body:
            found.too_large.append(given)
        else:
            found.requests.append(given)


def _decode(topic: str, record: Rec) -> Submit | Cancel | Completion:
    if not record.readable:
        raise BadRecord("no client can read it", field="headers")
    if topic == "requests":
        return decode_request(record.key, record.value, record.offset, record.timestamp)
    return decode_completion(record.key, record.value, record.offset)
