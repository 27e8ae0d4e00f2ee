"""The records of the input topics that were applied, sorted by what a shard must do with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.core.inputs import Cancel, Completion, Submit
from streams.errors import BadRecord
from streams.wire import FORWARDED, decode_completion, decode_request, partition_for
from tests.integration.topics import Seen

Run = tuple[str, str]  # tenant, run_id
Place = tuple[str, int, int]  # topic without its prefix, partition, offset


@dataclass
class Inputs:
    """What could be read, where it belongs, is in one of the first three; reports alone are not kept."""

    submits: list[tuple[Place, Submit]] = field(default_factory=list)
    cancels: dict[Run, int] = field(default_factory=dict)  # the offset of the last one
    unusable: list[Place] = field(default_factory=list)  # unreadable, or forwarded and still not where it belongs
    astray: list[Place] = field(default_factory=list)  # to be forwarded
    copies: Counter[str] = field(default_factory=Counter)  # of forwarded records, by where they come from


def sort_inputs(topics: Mapping[str, list[Seen]], applied: Mapping[int, Mapping[str, int]], shards: int) -> Inputs:
    """`applied` is the last offset applied by shard and topic."""
    inputs = Inputs()
    for topic, records in topics.items():
        for seen in records:
            origin = dict(seen.headers).get(FORWARDED)
            if origin is not None:
                inputs.copies[origin.decode(errors="replace")] += 1
            if seen.offset <= applied[seen.partition].get(topic, -1):
                _sort(inputs, topic, seen, shards, forwarded=origin is not None)
    return inputs


def _sort(inputs: Inputs, topic: str, seen: Seen, shards: int, *, forwarded: bool) -> None:
    place = (topic, seen.partition, seen.offset)
    try:
        given = _decode(topic, seen)
    except BadRecord:
        inputs.unusable.append(place)
        return
    if partition_for(given.tenant, shards) != seen.partition:
        (inputs.unusable if forwarded else inputs.astray).append(place)
    elif isinstance(given, Submit):
        inputs.submits.append((place, given))
    elif isinstance(given, Cancel):
        inputs.cancels[given.tenant, given.run_id] = given.position


def _decode(topic: str, seen: Seen) -> Submit | Cancel | Completion:
    if not seen.readable:
        raise BadRecord(field="headers")
    if topic == "requests":
        return decode_request(seen.key, seen.value, seen.offset, seen.timestamp_ms)
    return decode_completion(seen.key, seen.value, seen.offset)
