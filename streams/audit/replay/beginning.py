"""With what a replay begins: with nothing, or with the rows of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from streams.audit.checkpoints import (
    TOPIC,
    before_first_step,
    feet,
    latest_before,
    of_state,
    open_checkpoint,
    positions_of,
)
from streams.core import VERSION
from streams.core.shard import Shard
from streams.errors import BadRecord, CheckpointWrong, NotReplayable
from streams.intake import Source
from streams.rows import StateHash, canonical, encode_key, row_key
from streams.wire import decode_journal

if TYPE_CHECKING:
    from streams.audit.checkpoints import Checkpoint
    from streams.audit.recording import Recording
    from streams.rows import PositionsRecord
    from streams.rows.checkpoint import Foot


class Begun(NamedTuple):
    """A shard before the first step that is replayed."""

    core: Shard
    hash: StateHash
    step: int  # the last one that it knows of
    applied: Mapping[str, int]  # topic -> offset of the last input applied
    previous: str  # what the next journal record must name; "": a chain begins with it
    offset: int  # of the journal: records before it are of that step or earlier


def begin(recording: Recording, shard: int, start: Checkpoint | None) -> Begun:
    """Make the shard; without a `start`, as it was before its first step: empty, or as a migration has left it.

    Raises `CheckpointWrong`: its rows are not what was written, or contradict each other.
    """
    start = start or before_first_step(recording, shard)
    if start is None:
        return Begun(Shard(shard, recording.shards), StateHash(), 0, {}, "", 0)
    records = list(start.records())
    state = StateHash()
    for record in records:
        key = encode_key(shard, row_key(record))
        state.put(key, canonical(record, start.rows[key]))
    try:
        core = Shard.load(shard, recording.shards, records)
    except ValueError as error:
        raise CheckpointWrong(f"{start}: its rows contradict each other: {error}") from error
    positions = start.positions
    # Its owner went on from this row: one of before there was a chain has no digest, and the next record names none.
    previous = "" if positions is None else positions.journal
    applied = {} if positions is None else positions.applied
    return Begun(core, state, start.step, applied, previous, start.foot.journal_end)


def choose_start(
    recording: Recording, shard: int, *, since_ms: int | None, from_checkpoint: bool, kept: Recording | None = None
) -> Checkpoint | None:
    """Return the checkpoint to begin with; None: the beginning.

    With `kept` that is the state as it stands there. With `since_ms` it is the last one at or before that time, if
    there is one; else with `from_checkpoint` the first one after which no input has been deleted, and this version of
    the core has decided.

    Raises:
        NotReplayable: with `from_checkpoint`, there is none.
        CheckpointWrong: it is not what was written.
    """
    if kept is not None:
        return of_state(kept, shard)
    if since_ms is not None:
        found = latest_before(recording, shard, at_ms=since_ms)
        if found is not None or not from_checkpoint:
            return found
    elif from_checkpoint:
        found = _first_usable(recording, shard)
    else:
        return None
    if found is None:
        raise NotReplayable(f"shard {shard} has no checkpoint in {recording.prefix}{TOPIC} to begin with")
    return found


def _first_usable(recording: Recording, shard: int) -> Checkpoint | None:
    low = {source.value: recording.bounds(source.value, shard)[0] for source in Source}
    found = None
    for offset, foot in feet(recording, shard):
        positions = positions_of(foot, offset)
        applied = positions.applied if positions is not None else {}
        if any(applied.get(topic, -1) + 1 < first for topic, first in low.items()):
            break
        if _is_ours(recording, foot, positions):
            found = offset, foot
        elif found is not None:
            break  # what came before it cannot be replayed here, up to where that one begins
    return None if found is None else open_checkpoint(recording, *found)


def _is_ours(recording: Recording, foot: Foot, positions: PositionsRecord | None) -> bool:
    """Whether this version of the core has decided what follows a checkpoint; if nothing does, it would."""
    if positions is not None and positions.core == VERSION:
        return True
    for record in recording.read("journal", foot.shard, foot.journal_end):
        with suppress(BadRecord):  # whoever replays it finds it
            entry = decode_journal(record.value)
            if entry.step > foot.step:
                return entry.core == VERSION
    return True
