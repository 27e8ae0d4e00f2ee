"""The recording that is tampered with, and how its records are found and changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import orjson

from streams.audit.recording import MemoryRecording
from streams.audit.replay import ShardReplay
from streams.audit.verify import Problem, Report, verify
from streams.errors import NotReplayable
from tests.recorded import record
from tests.unit.audit.verify.tampering import documents, records

SHARD: Final = 0
INTERVAL_MS: Final = 1_000
Document = dict[str, Any]
Path = tuple[str | int, ...]


@cache
def recording() -> MemoryRecording:
    return record(15, shards=2, ticks=80, takeovers=6, drain=False)


@cache
def journal() -> list[Document]:
    return documents(recording(), "journal", SHARD)


def check(given: MemoryRecording) -> Report:
    return verify(given, interval_ms=INTERVAL_MS)


def first_of(report: Report) -> Problem:
    assert report.problems, "nothing was found"
    return report.problems[0]


def diverges_at(given: MemoryRecording) -> int:
    """The step at which a replay stops."""
    replay = ShardReplay(given, SHARD)
    last = 0
    try:
        for step in replay:
            last = step.entry.step
    except NotReplayable:
        return last + 1
    assert replay.divergence is not None, "the replay found nothing"
    return replay.divergence.step


def index_of(has: Callable[[Document], object]) -> int:
    """The record of the journal, from the middle on, of which something is true."""
    middle = len(journal()) // 2
    order: list[int] = [*range(middle, len(journal())), *range(middle)]
    return next(index for index in order if has(journal()[index]))


def again_in_step(document: Document) -> int | None:
    """The place of a decision for a flow that has had one before in the same step."""
    seen: set[tuple[str, str]] = set()
    own = document["decisions"]
    for place, flow in enumerate(zip(own["class"], own["tenant"], strict=True)):
        if flow in seen and flow[1] not in {"t2", "t3"}:  # these have a cap, or are paused
            return place
        seen.add(flow)
    return None


def other(value: Any) -> Any:
    """A value of the same type that is another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    assert isinstance(value, str)
    return value[:-1] + ("x" if value[-1:] != "x" else "y")


def changing(*path: str | int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = other(place[path[-1]])

    return change


def full(*path: str) -> Callable[[Document], object]:
    """Whether there is something at a path."""

    def has(document: Document) -> object:
        place: Any = document
        for name in path:
            place = place.get(name) or {}
        return place

    return has


def documents_or_nothing(topic: str) -> list[Document]:
    """What the records say; nothing of those that cannot be read."""
    found = []
    for each in records(recording(), topic, SHARD):
        try:
            found.append(orjson.loads(each.value or b""))
        except orjson.JSONDecodeError:
            found.append({})
    return found


def named(field: object) -> str | None:
    return ".".join(map(str, field)) if isinstance(field, tuple) else None
