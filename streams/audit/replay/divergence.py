"""What was recorded of a step against what came of it in the replay: field by field, the first difference counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.errors import shown, visible
from streams.intake import SKIPPED

if TYPE_CHECKING:
    from streams.core.effects import Effects
    from streams.wire import JournalEntry

# Deliveries of records that had been applied before: they are not in the topics a second time, and change nothing.
_NOT_RECORDED: Final = frozenset({SKIPPED})

_ABSENT: Final = "nothing"

# Whatever is replayed, and what for: a run that is older cannot be explained, either.
LATER: Final = "what follows a later checkpoint can be replayed (`fairstream audit replay --from-checkpoint`)"


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
    yield from _SETTLEMENTS.differences(entry.settlements, effects.settlements)
    yield from _REJECTIONS.differences(entry.rejections, effects.rejections)
    yield from _REVOKES.differences(entry.revokes, effects.revokes)
    yield from _DECISIONS.differences(entry.decisions, effects.dispatches)
    yield from _counts(entry.counts, effects.counts, intake_counts)


class _Rows:
    """Rows of one kind, as the journal keeps them and as they come out of the core."""

    def __init__(self, name: str, *fields: str) -> None:
        self._name: Final = name
        self._fields: Final = [field.rstrip("_") for field in fields]
        self._values: Final = attrgetter(*fields)

    def differences(self, recorded: Sequence[object], replayed: Sequence[object]) -> Iterator[Difference]:
        """Yield the fields that differ, up to where one side ends. Equal rows, as a rule all of them, cost little."""
        ours, theirs = [*map(self._values, recorded)], [*map(self._values, replayed)]
        if ours == theirs:
            return
        for index, (one, other) in enumerate(zip_longest(ours, theirs)):
            if one is None or other is None:
                yield f"{self._name}[{index}]", self._named(one), self._named(other)
                return
            for field, said, found in zip(self._fields, one, other, strict=True):
                yield from _single(f"{self._name}[{index}].{field}", said, found)

    def _named(self, values: Sequence[object] | None) -> object:
        return _ABSENT if values is None else dict(zip(self._fields, values, strict=True))


_DECISIONS: Final = _Rows(
    "decisions", "seq", "tenant", "run_id", "class_", "attempt", "estimate", "deficit_before", "round"
)
_REVOKES: Final = _Rows("revokes", "seq", "tenant", "run_id", "attempt", "reason")
_SETTLEMENTS: Final = _Rows("settlements", "tenant", "run_id", "attempt", "outcome", "estimate", "actual", "reported")
_REJECTIONS: Final = _Rows("rejections", "tenant", "run_id", "reason", "position")


def _single(field: str, recorded: object, replayed: object) -> Iterator[Difference]:
    if recorded != replayed:
        yield field, recorded, replayed


def _counts(recorded: Mapping[str, int], core: Mapping[str, int], intake: Mapping[str, int]) -> Iterator[Difference]:
    replayed = {**core}
    for name, number in intake.items():
        replayed[name] = replayed.get(name, 0) + number
    for name in sorted({*recorded, *replayed} - _NOT_RECORDED):
        yield from _single(f"counts.{name}", recorded.get(name, 0), replayed.get(name, 0))
