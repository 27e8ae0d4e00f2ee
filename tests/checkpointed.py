"""Checkpoints in a recording that was made without Kafka: taken as a scheduler takes them, at any step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streams.audit.checkpoints import TOPIC, Copy
from streams.audit.recording import MemoryRecording, Rec
from streams.core.records import FlowRecord
from streams.rows import POSITIONS, PositionsRecord, decode, decode_key, encode, encode_key
from streams.rows.checkpoint import encode_part
from streams.wire import journal_digest


def ends_of_steps(recording: MemoryRecording, shard: int) -> list[int]:
    """The offsets of the state topic at which its rows are those after a step."""
    last = encode_key(shard, (POSITIONS,))  # in each transaction
    return [record.offset + 1 for record in recording.read("state", shard) if record.key == last]


def take(
    recording: MemoryRecording, shard: int, state_end: int | None = None, *, filled: bool = False
) -> MemoryRecording:
    """Return the recording with a checkpoint of what the state was at an offset (None: at its end)."""
    there = [*recording.read(TOPIC, shard)]
    new = [*values(recording, shard, len(there), state_end, filled=filled)]
    return append(recording, shard, new)


def take_forged(recording: MemoryRecording, shard: int, state_end: int) -> MemoryRecording:
    """Return the recording with a checkpoint that contradicts nothing in itself, and is not what the state was.

    As whoever can write the topic makes it: a tenant has had an attempt more.
    """
    state = [*recording.read("state", shard, 0, state_end)]
    index = max(number for number, each in enumerate(state) if b'"flow"' in (each.key or b"") and each.value)
    key, flow = decode_key(state[index].key or b"")[1], state[index].value or b""
    row = decode(key, flow)
    assert isinstance(row, FlowRecord)
    state[index] = state[index]._replace(value=encode(replace(row, dispatched=row.dispatched + 1)))
    forged = take(recording.replaced({("state", shard): state}), shard, state_end)
    return recording.replaced({(TOPIC, shard): [*forged.read(TOPIC, shard)]})


def append(recording: MemoryRecording, shard: int, new: list[bytes]) -> MemoryRecording:
    """Return the recording with these values at the end of a shard's checkpoints."""
    there = [*recording.read(TOPIC, shard)]
    begin = there[-1].offset + 1 if there else 0
    added = [Rec(begin + number, 0, b"%d" % shard, value) for number, value in enumerate(new)]
    return recording.replaced({(TOPIC, shard): there + added})


def values(
    recording: MemoryRecording, shard: int, head: int, state_end: int | None = None, *, filled: bool = False
) -> Iterator[bytes]:
    """The values of a checkpoint's records, of which the first will have the offset `head`."""
    state = [*recording.read("state", shard, 0, state_end)]
    copy = Copy(
        f"checkpoint-at-{head}",
        shard,
        begun_ms=1,
        state_end=state[-1].offset + 1 if state else 0,
        journal_end=_journal_end(recording, shard, state),
        filled=filled,
    )
    yield encode_part(copy.head())
    yield from copy.chunks((record.key or b"", record.value) for record in state)
    yield encode_part(copy.foot(head))


def _journal_end(recording: MemoryRecording, shard: int, state: list[Rec]) -> int:
    """Where the journal ended for whoever saw this state."""
    key = encode_key(shard, (POSITIONS,))
    last = next((record.value for record in reversed(state) if record.key == key), None)
    if last is None:
        return 0
    positions = decode((POSITIONS,), last)
    assert isinstance(positions, PositionsRecord)
    if not positions.journal:
        return 0  # a fairstream of before there was a chain: the journal is read from its beginning
    digests = {journal_digest(record.value or b""): record.offset for record in recording.read("journal", shard)}
    return digests[positions.journal] + 1
