"""When was who backlogged: the intervals in which shares may be compared with weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from streams.simulate.pool import Served


class Interval(NamedTuple):
    """Milliseconds from the beginning of the workload: from_ms <= t < until_ms."""

    from_ms: int
    until_ms: int

    @property
    def length_ms(self) -> int:
        return self.until_ms - self.from_ms

    def contains(self, at_ms: int) -> bool:
        return self.from_ms <= at_ms < self.until_ms

    def covers(self, other: Interval) -> bool:
        return self.from_ms <= other.from_ms and other.until_ms <= self.until_ms


class Contest(NamedTuple):
    """An interval and the tenants that had something queued at every moment of it."""

    interval: Interval
    tenants: tuple[str, ...]  # in the order of their names


def backlogs(served: Iterable[Served]) -> dict[str, list[Interval]]:
    """Return for each tenant the maximal intervals in which it had a run queued: filed and not yet handed out."""
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for run in served:
        # At the same moment an arrival counts before a decision: a queue that is refilled as it empties never emptied.
        changes[run.arrival.tenant] += [(run.arrival.at_ms, 1), (run.decided_ms, -1)]
    return {
        tenant: _intervals(sorted(steps, key=lambda step: (step[0], -step[1]))) for tenant, steps in changes.items()
    }


def find_contest(served: Iterable[Served]) -> Contest | None:
    """Return the longest interval in which two tenants or more were backlogged all the time; None if there is none.

    Everyone who was backlogged throughout it is named. Of equally long intervals the earliest is taken.
    """
    known = backlogs(served)
    best: Interval | None = None
    latest = 0  # end of those that began before: the best partner of the next, and never its own tenant's
    for each in sorted(interval for own in known.values() for interval in own):
        common = Interval(each.from_ms, min(each.until_ms, latest))
        if common.length_ms > (best.length_ms if best else 0):
            best = common
        latest = max(latest, each.until_ms)
    return None if best is None else _contest(best, known)


def contest_in(served: Iterable[Served], interval: Interval) -> Contest:
    """Return who was backlogged throughout an interval that was found elsewhere: in another play of the same runs."""
    return _contest(interval, backlogs(served))


def _contest(interval: Interval, known: Mapping[str, Sequence[Interval]]) -> Contest:
    inside = tuple(sorted(name for name, own in known.items() if any(each.covers(interval) for each in own)))
    return Contest(interval, inside)


def _intervals(steps: Sequence[tuple[int, int]]) -> list[Interval]:
    found: list[Interval] = []
    queued = since = 0
    for at_ms, change in steps:
        if queued == 0:
            since = at_ms
        queued += change
        if queued == 0 and at_ms > since:
            found.append(Interval(since, at_ms))
    return found


def overlaps(first: Sequence[Interval], second: Sequence[Interval]) -> Iterator[Interval]:
    """Yield where both are, walking the two sorted lists once."""
    i = j = 0
    while i < len(first) and j < len(second):
        from_ms, until_ms = max(first[i].from_ms, second[j].from_ms), min(first[i].until_ms, second[j].until_ms)
        if from_ms < until_ms:
            yield Interval(from_ms, until_ms)
        if first[i].until_ms < second[j].until_ms:
            i += 1
        else:
            j += 1
