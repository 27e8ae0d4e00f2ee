"""Two accounts of the same things, which come in any order: what the journal says, and what stands in another topic.

What both have is compared and dropped, so memory is that of what one of them is ahead by.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

Said = TypeVar("Said")
Done = TypeVar("Done")


class Matching(Generic[Said, Done]):
    """Pairs by key. A key may come several times on each side: the first meets the first."""

    def __init__(self) -> None:
        self._said: Final[dict[Hashable, list[Said]]] = {}
        self._done: Final[dict[Hashable, list[Done]]] = {}

    def say(self, key: Hashable, said: Said) -> Done | None:
        """Take in what the journal says; return its other side if that has come, else keep it."""
        return _meet(key, said, self._said, self._done)

    def do(self, key: Hashable, done: Done) -> Said | None:
        """Take in what stands in the other topic; return its other side if that has come, else keep it."""
        return _meet(key, done, self._done, self._said)

    def only_said(self) -> Iterator[Said]:
        """Yield what nobody did."""
        for left in self._said.values():
            yield from left

    def only_done(self) -> Iterator[Done]:
        """Yield what nobody said."""
        for left in self._done.values():
            yield from left


Own = TypeVar("Own")
Other = TypeVar("Other")


def _meet(
    key: Hashable, own: Own, mine: dict[Hashable, list[Own]], others: dict[Hashable, list[Other]]
) -> Other | None:
    waiting = others.get(key)
    if waiting is None:
        mine.setdefault(key, []).append(own)
        return None
    found = waiting.pop(0)
    if not waiting:
        del others[key]
    return found
