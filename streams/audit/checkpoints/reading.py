"""Finds checkpoints in a recording, and reads them. One without a foot is none: its writer did not come to an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.errors import CheckpointWrong, StateUnreadable
from streams.rows import POSITIONS, PositionsRecord, RuntimeRow, decode, decode_key
from streams.rows.checkpoint import Digest, Foot, Rows, decode_part, decode_rows

if TYPE_CHECKING:
    from streams.audit.recording import Rec, Recording
    from streams.core.records import Record

TOPIC: Final = "checkpoints"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The rows of a shard after a step."""

    foot: Foot
    offset: int  # of its foot; -1: there is none, it is the state as it stood
    positions: PositionsRecord | None  # None: nothing was applied yet, as after a migration
    rows: dict[bytes, bytes]  # the core's, as they are in the state topic

    @property
    def shard(self) -> int:
        """Whose rows they are."""
        return self.foot.shard

    @property
    def step(self) -> int:
        """The last step that they know of. 0: none; the first one is to come."""
        return self.foot.step

    @property
    def now_ms(self) -> int:
        """The time of that step."""
        return self.foot.now_ms

    def records(self) -> Iterator[Record]:
        """Yield what the rows hold, for `Shard.load`. Raises `CheckpointWrong` for one that is no row of the shard."""
        for key_bytes, value in self.rows.items():
            try:
                shard, key = decode_key(key_bytes)
                record = decode(key, value)
            except StateUnreadable as error:
                raise CheckpointWrong(f"{self}: {error}") from error
            if shard != self.shard or isinstance(record, RuntimeRow):
                raise CheckpointWrong(f"{self}: {key_bytes!r} is not one of its rows")
            yield record

    def __str__(self) -> str:
        if self.offset < 0:
            return f"the state of shard {self.shard} after step {self.step}"
        return f"the checkpoint of shard {self.shard} after step {self.step} (offset {self.offset})"


def latest_before(
    recording: Recording, shard: int, *, step: int | None = None, at_ms: int | None = None
) -> Checkpoint | None:
    """Return the last checkpoint that is at or before a step and a time; None: there is none.

    It is complete, and is what was written; that it is what was, `prove` says. Raises as `open_checkpoint` does.
    """
    for offset, foot in feet(recording, shard):
        if (step is None or foot.step <= step) and (at_ms is None or foot.now_ms <= at_ms):
            return open_checkpoint(recording, offset, foot)
    return None


def before_first_step(recording: Recording, shard: int) -> Checkpoint | None:
    """Return what a shard began with, as a migration has left it; None: it began with nothing.

    Raises as `open_checkpoint` does.
    """
    if shard >= recording.partitions(TOPIC):
        return None
    found = None
    for record in recording.read(TOPIC, shard):
        part = _part(record)
        if isinstance(part, Foot) and part.shard == shard:
            if part.step:
                break
            found = record.offset, part  # a migration that was killed has written another before
    return None if found is None else open_checkpoint(recording, *found)


def feet(recording: Recording, shard: int) -> Iterator[tuple[int, Foot]]:
    """Yield offset and foot of the checkpoints of a shard, the last one first.

    Little is read but the feet. Of two that were written at once, the one that was complete first is passed over.
    """
    if shard >= recording.partitions(TOPIC):
        return
    first, stop = recording.bounds(TOPIC, shard)
    while (found := _last_foot(recording, shard, first, stop)) is not None:
        yield found
        offset, foot = found
        stop = min(offset, foot.head)


def open_checkpoint(recording: Recording, offset: int, foot: Foot) -> Checkpoint:
    """Read the rows of a checkpoint.

    Raises `CheckpointWrong` if they are not what was written: the number of chunks, or their digest, is another.
    """
    digest, chunks, written = Digest(), 0, 0
    rows: dict[bytes, bytes] = {}
    for record in recording.read(TOPIC, foot.shard, foot.head, offset):
        part = _part(record)
        if not isinstance(part, Rows) or part.id != foot.id:
            continue
        assert record.value is not None, "it is a part of a checkpoint"
        digest.add(record.value)
        chunks += 1
        for key, value in _pairs(part, record):
            _apply(rows, key, value)
            written += 1
    found = Checkpoint(foot, offset, positions_of(foot, offset), rows)
    if (chunks, digest.value) != (foot.chunks, foot.digest):
        raise CheckpointWrong(
            f"{found}: its foot says {foot.chunks} chunks of digest {foot.digest}, there are {chunks} of {digest.value}"
        )
    if written != foot.rows:
        raise CheckpointWrong(f"{found}: its foot says {foot.rows} rows, there are {written}")
    return found


def positions_of(foot: Foot, offset: int) -> PositionsRecord | None:
    """Return where the inputs stood, without the rows; `offset` is the foot's. Raises `CheckpointWrong`."""
    if foot.positions is None:
        return None
    try:
        found = decode((POSITIONS,), foot.positions.encode())
    except StateUnreadable as error:
        raise CheckpointWrong(f"offset {offset}: {error}") from error
    assert isinstance(found, PositionsRecord), "a row of this kind"
    return found


def _apply(rows: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value


def _pairs(part: Rows, record: Rec) -> Iterator[tuple[bytes, bytes | None]]:
    assert record.value is not None, "it is a part of a checkpoint"
    try:
        yield from decode_rows(part, record.value)
    except StateUnreadable as error:
        raise CheckpointWrong(f"offset {record.offset}: {error}") from error


def _last_foot(recording: Recording, shard: int, first: int, stop: int) -> tuple[int, Foot] | None:
    """Return the last foot below `stop`, looked for in ever longer stretches: as a rule it is the last record."""
    length = 1
    while stop > first:
        start = max(first, stop - length)
        last = None
        for record in recording.read(TOPIC, shard, start, stop):
            part = _part(record)
            if isinstance(part, Foot) and part.shard == shard:
                last = record.offset, part
        if last is not None:
            return last
        stop, length = start, 2 * length
    return None


def _part(record: Rec) -> object:
    """Return what a record is; None for one that is no part of a checkpoint: it can't make one that is proved."""
    try:
        return decode_part(record.value)
    except StateUnreadable:
        return None
