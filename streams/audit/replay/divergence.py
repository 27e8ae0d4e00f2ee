"""What was recorded of a step against what came of it in the replay: field by field, the first difference counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.errors import shown, visible
from streams.intake import SKIPPED

if TYPE_CHECKING:
    from streams.core.effects import Effects
    from streams.wire import JournalEntry

# Deliveries of records that had been applied before: they are not in the topics a second time, and change nothing.
_NOT_RECORDED: Final = frozenset({SKIPPED})

_ABSENT: Final = "nothing"

_DECISION: Final = ("seq", "tenant", "run_id", "class_", "attempt", "estimate", "deficit_before", "round")
_REVOKE: Final = ("seq", "tenant", "run_id", "attempt", "reason")
_SETTLEMENT: Final = ("tenant", "run_id", "attempt", "outcome", "estimate", "actual", "reported")
_REJECTION: Final = ("tenant", "run_id", "reason", "position")


class Divergence(NamedTuple):
    """The replay of a step does not give what was recorded, or the record contradicts itself there."""

    shard: int
    step: int
    offset: int  # of the journal's record
    field: str  # `decisions[3].estimate`, `state`, ...
    recorded: object
    replayed: object
    note: str = ""  # what it means, where the two sides do not say it

    def __str__(self) -> str:
        """One line, with both sides."""
        where = f"shard {self.shard}, step {self.step} (journal offset {self.offset}), {visible(self.field)}"
        sides = f"recorded {shown(self.recorded, 200)}, replayed {shown(self.replayed, 200)}"
        return f"{where}: {visible(self.note)}; {sides}" if self.note else f"{where}: {sides}"


class Stopped(Exception):
    """The journal or the inputs are not what they should be; raised between the parts of a replay, which ends there."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(str(divergence))
        self.divergence = divergence


Difference = tuple[str, object, object]  # field, recorded, replayed


def differences(entry: JournalEntry, effects: Effects, intake_counts: Mapping[str, int]) -> Iterator[Difference]:
    """Yield what an entry and the effects of its replay do not agree on, in the order of the decision."""
    yield from _single("now_ms", entry.now_ms, effects.now_ms)
    yield from _rows("settlements", _SETTLEMENT, entry.settlements, effects.settlements)
    yield from _rows("rejections", _REJECTION, entry.rejections, effects.rejections)
    yield from _rows("revokes", _REVOKE, entry.revokes, effects.revokes)
    yield from _rows("decisions", _DECISION, entry.decisions, effects.dispatches)
    yield from _counts(entry.counts, effects.counts, intake_counts)


def _single(field: str, recorded: object, replayed: object) -> Iterator[Difference]:
    if recorded != replayed:
        yield field, recorded, replayed


def _rows(
    name: str, fields: Sequence[str], recorded: Sequence[object], replayed: Sequence[object]
) -> Iterator[Difference]:
    for index in range(max(len(recorded), len(replayed))):
        if index >= len(recorded):
            yield f"{name}[{index}]", _ABSENT, _brief(replayed[index], fields)
            return
        if index >= len(replayed):
            yield f"{name}[{index}]", _brief(recorded[index], fields), _ABSENT
            return
        for field in fields:
            ours, theirs = getattr(recorded[index], field), getattr(replayed[index], field)
            if ours != theirs:
                yield f"{name}[{index}].{field.rstrip('_')}", ours, theirs


def _brief(row: object, fields: Sequence[str]) -> dict[str, object]:
    return {field.rstrip("_"): getattr(row, field) for field in fields}


def _counts(recorded: Mapping[str, int], core: Mapping[str, int], intake: Mapping[str, int]) -> Iterator[Difference]:
    replayed = {**core}
    for name, number in intake.items():
        replayed[name] = replayed.get(name, 0) + number
    for name in sorted({*recorded, *replayed} - _NOT_RECORDED):
        yield from _single(f"counts.{name}", recorded.get(name, 0), replayed.get(name, 0))
