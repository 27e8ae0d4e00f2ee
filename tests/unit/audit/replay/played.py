"""Recordings to be replayed, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from streams.audit.recording import MemoryRecording
from streams.audit.replay import Divergence, ShardReplay
from streams.wire import JournalEntry, decode_journal
from tests.recorded import record

SHARD = 0


@cache
def recorded(seed: int = 1) -> MemoryRecording:
    return record(seed, ticks=80)


def entries(recording: MemoryRecording, shard: int = SHARD) -> list[JournalEntry]:
    return [decode_journal(each.value) for each in recording.read("journal", shard)]


def diverges(recording: MemoryRecording, shard: int = SHARD) -> Divergence:
    """Where a replay ends that does not come to the end."""
    replay = ShardReplay(recording, shard)
    for _ in replay:
        pass
    assert replay.divergence is not None
    return replay.divergence


def first_step(recording: MemoryRecording, wanted: Callable[[JournalEntry], object], shard: int = SHARD) -> int:
    """The number of the first step that is as wanted; journal records stand in its order, from 1 on."""
    return next(each.step for each in entries(recording, shard) if wanted(each))
