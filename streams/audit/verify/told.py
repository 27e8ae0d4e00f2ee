"""What the journal says of one step, to be taken one by one, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, Generic, TypeVar

from streams.audit.verify.books import Books
from streams.audit.verify.inputs import Inputs
from streams.audit.verify.subjects import Run
from streams.core import reasons
from streams.core.effects import Revoke, Settlement
from streams.wire import JournalEntry, RefusedRun

_NEVER: Final = 1 << 63
_LATER: Final = frozenset(
    {
        reasons.DEAD_LETTERED,
        reasons.EXPIRED,
        reasons.OVERLOADED,
        reasons.TOO_LARGE,
        reasons.UNKNOWN_TENANT,
    }
)

Item = TypeVar("Item")


class Rest(Generic[Item]):
    """A list of which the first items have been taken."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items: Final = items
        self._taken = 0

    @property
    def first(self) -> Item | None:
        """The next one; None: all are taken."""
        return self._items[self._taken] if self._taken < len(self._items) else None

    def take(self) -> Item:
        self._taken += 1
        return self._items[self._taken - 1]

    @property
    def left(self) -> Sequence[Item]:
        return self._items[self._taken :]


class Told:
    """One step: what went in, and what is still to be explained of what came out."""

    def __init__(self, entry: JournalEntry, inputs: Inputs) -> None:
        self.entry: Final = entry
        self.inputs: Final = inputs
        self.step: Final = entry.step
        self.settlements: Final[Rest[Settlement]] = Rest(entry.settlements)
        self.refusals: Final[Rest[RefusedRun]] = Rest(entry.rejections)
        self.revokes: Final[Rest[Revoke]] = Rest(entry.revokes)

    def pass_over(self, books: Books) -> Iterator[RefusedRun]:
        """Take the next refusals as long as they are of runs that the books don't know, let in before they began."""
        own = (*self.inputs.requests, *self.inputs.too_large)
        began = min((each.position for each in own), default=_NEVER)
        while (first := self.refusals.first) is not None:
            known = (first.tenant, first.run_id) in books.runs
            if known or first.position >= began or first.reason not in _LATER:
                return
            yield self.refusals.take()

    def refusal_of(self, run: Run, reasons: Collection[str]) -> RefusedRun | None:
        """Take the next refusal if it is of this run, for one of these reasons."""
        first = self.refusals.first
        if first is None or (first.tenant, first.run_id) != run.identity or first.reason not in reasons:
            return None
        if run.known and first.position != run.position:
            return None
        return self.refusals.take()
