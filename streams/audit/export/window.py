"""Which records of a recording belong together: those of a stretch of steps of each shard, and of no others.

A deployment may run on while it is exported, and its topics are read one after the other. So where it ends is decided
once for each shard, by its positions row, and everything that is read later is cut there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from streams.audit.checkpoints import feet, positions_of
from streams.errors import StateUnreadable
from streams.rows import POSITIONS, PositionsRecord, decode, encode_key
from streams.wire import journal_digest

if TYPE_CHECKING:
    from streams.audit.recording import Rec, Recording

_INPUTS: Final = ("requests", "completions")
_BY_SHARD: Final = frozenset({*_INPUTS, "journal", "checkpoints"})  # what a replay reads: from the checkpoint on


class _Range(msgspec.Struct, gc=False):
    topic: str
    first: int
    last: int


class _Step(msgspec.Struct, gc=False):
    """What is read here of a journal record, a dispatch or a rejection."""

    shard: int
    step: int
    now_ms: int = 0
    inputs: list[_Range] = []


_DECODER: Final = msgspec.json.Decoder(_Step)


@dataclass(slots=True)
class _Span:
    """What is exported of a shard; known once its journal has been read."""

    begins: dict[str, int] = field(default_factory=dict)  # topic -> offset, after a checkpoint; absent: the first
    closing: str | None = None  # digest of its last journal record; None: as many as there are
    known: bool = False  # whether its journal has been read, as far as it is taken
    first: int | None = None  # steps; None: none
    last: int = -1
    named: dict[str, int] = field(default_factory=dict)  # topic -> offset of the last input


class Window:
    """Cuts the partitions of a recording. Ask for them in the order of `ORDER`: each depends on those before it."""

    ORDER: Final = ("checkpoints", "state", "journal", "requests", "completions", "dispatch", "rejected", "policy")

    def __init__(self, recording: Recording, since_ms: int | None = None, until_ms: int | None = None) -> None:
        """Take the steps from `since_ms` to `until_ms`, and so many before as a replay needs to come there.

        These begin after the last checkpoint at or before `since_ms`; if there is none, at the beginning.
        """
        self.since_ms: Final = since_ms
        self.until_ms: Final = until_ms
        self._recording: Final = recording
        self._spans: Final = [_Span(self._begins(shard)) for shard in range(recording.shards)]

    def includes(self, topic: str) -> bool:
        """Whether a topic can be cut there. The state is kept as it is now, so not as it was at another moment."""
        return topic != "state" or self.until_ms is None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset that is taken, and the one after the last, as far as they are known by now."""
        first, stop = self._recording.bounds(topic, partition)
        if topic in _BY_SHARD:
            first = max(first, self._spans[partition].begins.get(topic, first))
        if topic in _INPUTS and self.until_ms is not None:
            stop = min(stop, self._spans[partition].named.get(topic, first - 1) + 1)
        return first, max(first, stop)

    def records(self, topic: str, partition: int) -> Iterator[Rec]:
        """Yield the records that are taken of a partition."""
        first, stop = self.bounds(topic, partition)
        found = self._recording.read(topic, partition, first, stop)
        match topic:
            case "state":
                return self._noted_state(found, partition)
            case "journal":
                return self._noted_journal(found, partition)
            case "dispatch" | "rejected":
                return (record for record in found if self._has(record))
            case "checkpoints" if self.until_ms is not None:
                return (record for record in found if record.timestamp <= self.until_ms)
        return found

    def _begins(self, shard: int) -> dict[str, int]:
        if self.since_ms is not None:
            for offset, foot in feet(self._recording, shard):
                if foot.now_ms <= self.since_ms:
                    positions = positions_of(foot, offset)
                    applied = {} if positions is None else positions.applied
                    inputs = {topic: last + 1 for topic, last in applied.items()}
                    return {"checkpoints": foot.head, "journal": foot.journal_end, **inputs}
        return {}

    def _noted_state(self, found: Iterator[Rec], shard: int) -> Iterator[Rec]:
        key, value = encode_key(shard, (POSITIONS,)), None
        for record in found:
            if record.key == key:
                value = record.value
            yield record
        self._spans[shard].closing = _closing(value)

    def _noted_journal(self, found: Iterator[Rec], shard: int) -> Iterator[Rec]:
        span = self._spans[shard]
        span.known = True
        for record in found:
            step = _step(record)
            if step is not None:
                if self.until_ms is not None and step.now_ms > self.until_ms:
                    return
                span.first = step.step if span.first is None else span.first
                span.last = step.step
                span.named |= {range_.topic: range_.last for range_ in step.inputs}
            yield record
            if span.closing is not None and journal_digest(record.value or b"") == span.closing:
                return

    def _has(self, record: Rec) -> bool:
        """Whether a dispatch or a rejection is of the stretch. One that tells no step is for the auditor to see."""
        step = _step(record)
        if step is None or not 0 <= step.shard < len(self._spans):
            return True
        span = self._spans[step.shard]
        return not span.known or (span.first is not None and span.first <= step.step <= span.last)


def _closing(positions: bytes | None) -> str | None:
    """Return the digest of a shard's last journal record. A row that is none does not keep the rest from an auditor."""
    if positions is None:
        return None
    try:
        row = decode((POSITIONS,), positions)
    except StateUnreadable:
        return None
    assert isinstance(row, PositionsRecord), "a row of this kind"
    return row.journal or None


def _step(record: Rec) -> _Step | None:
    try:
        return _DECODER.decode(record.value or b"")
    except msgspec.MsgspecError:
        return None
