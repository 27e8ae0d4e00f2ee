"""How far the work had come: tokens worked off by a moment, run by run, as a slot works evenly through its run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from streams.simulate.pool import Served


def worked_off(served: Iterable[Served], moments: Sequence[int]) -> dict[str, list[int]]:
    """Return for each tenant what had been worked off of its runs by each of the moments (ms, ascending), in tokens.

    A part of a run is rounded down to whole tokens.
    """
    ended: dict[str, list[int]] = {}  # by the first moment at which they count whole
    parts: dict[str, list[int]] = {}
    for run in served:
        tenant, tokens = run.arrival.tenant, run.arrival.tokens
        if tenant not in ended:
            ended[tenant], parts[tenant] = [0] * (len(moments) + 1), [0] * len(moments)
        whole = bisect_left(moments, run.ended_ms)
        ended[tenant][whole] += tokens
        for index in range(bisect_right(moments, run.started_ms), whole):
            parts[tenant][index] += tokens * (moments[index] - run.started_ms) // (run.ended_ms - run.started_ms)
    totals: dict[str, list[int]] = {}
    for tenant, counts in ended.items():
        before = 0
        totals[tenant] = []
        for count, part in zip(counts, parts[tenant], strict=False):  # the last count is of what ended later
            before += count
            totals[tenant].append(before + part)
    return totals


def steps(until_ms: int, parts: int) -> tuple[int, ...]:
    """Return the ends of so many equal parts of [0, until_ms]; fewer if there are not as many ms."""
    return tuple(sorted({until_ms * part // parts for part in range(1, parts + 1)} - {0}))
