"""Somebody who may write every topic, and does: what can be done to a recording, naively or with care."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from streams.audit.recording import MemoryRecording, Rec
from streams.rows import POSITIONS, PositionsRecord, decode, encode, encode_key
from streams.wire import journal_digest

Change = Callable[[dict[str, Any]], None]


def records(recording: MemoryRecording, topic: str, partition: int) -> list[Rec]:
    return [*recording.topics[topic, partition]]


def documents(recording: MemoryRecording, topic: str, partition: int) -> list[dict[str, Any]]:
    """What the records of a partition say."""
    return [orjson.loads(each.value or b"{}") for each in recording.topics[topic, partition]]


def altered(recording: MemoryRecording, topic: str, partition: int, index: int, change: Change) -> MemoryRecording:
    """One record says something else."""
    own = records(recording, topic, partition)
    document = orjson.loads(own[index].value or b"")
    change(document)
    own[index] = own[index]._replace(value=orjson.dumps(document))
    return recording.replaced({(topic, partition): own})


def dropped(recording: MemoryRecording, topic: str, partition: int, index: int) -> MemoryRecording:
    own = records(recording, topic, partition)
    del own[index]
    return recording.replaced({(topic, partition): own})


def doubled(recording: MemoryRecording, topic: str, partition: int, index: int) -> MemoryRecording:
    """One record stands there twice; what follows has moved on."""
    own = records(recording, topic, partition)
    again = [each._replace(offset=each.offset + 1) for each in own[index:]]
    return recording.replaced({(topic, partition): [*own[: index + 1], *again]})


def swapped(recording: MemoryRecording, topic: str, partition: int, index: int) -> MemoryRecording:
    """One record and the next have changed places."""
    own = records(recording, topic, partition)
    one, other = own[index], own[index + 1]
    own[index] = other._replace(offset=one.offset, timestamp=one.timestamp)
    own[index + 1] = one._replace(offset=other.offset, timestamp=other.timestamp)
    return recording.replaced({(topic, partition): own})


def restated(recording: MemoryRecording, shard: int, offset: int, change: Change) -> MemoryRecording:
    """A policy was another one, if you believe the policy topic and the journal, whose chain is right again."""
    stated = [each.offset for each in records(recording, "policy", 0)].index(offset)
    given = altered(recording, "policy", 0, stated, lambda document: change(document["policy"]))
    for index, document in enumerate(documents(recording, "journal", shard)):
        for number, each in enumerate(document.get("policies", ())):
            if each["offset"] == offset:
                given = altered(given, "journal", shard, index, _in_the_journal(number, change))
    return mended(given, shard)


def _in_the_journal(number: int, change: Change) -> Change:
    return lambda document: change(document["policies"][number]["policy"])


def mended(recording: MemoryRecording, shard: int) -> MemoryRecording:
    """The chain is right again: each record names the one before, and the positions row the last one."""
    own, before = records(recording, "journal", shard), ""
    for index, each in enumerate(own):
        document = orjson.loads(each.value or b"")
        document["previous"] = before
        value = orjson.dumps(document)
        own[index], before = each._replace(value=value), journal_digest(value)
    state, key = records(recording, "state", shard), encode_key(shard, (POSITIONS,))
    last = max(index for index, each in enumerate(state) if each.key == key)
    row = decode((POSITIONS,), state[last].value or b"")
    assert isinstance(row, PositionsRecord)
    state[last] = state[last]._replace(value=encode(replace(row, journal=before)))
    return recording.replaced({("journal", shard): own, ("state", shard): state})
