"""The gap between two backlogged tenants over every interval there is, against the bound that the core states."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from streams.simulate.backlog import Interval, backlogs
from streams.simulate.bound import most_in_flight
from streams.simulate.pool import Served


class Gap(NamedTuple):
    """The widest |S_i/f_i - S_j/f_j| over all parts of an interval in which both were backlogged."""

    tenants: tuple[str, str]
    interval: Interval
    observed: Fraction
    bound: Fraction


def gaps(served: Sequence[Served], weights: Mapping[str, int], quantum: int) -> Iterator[Gap]:
    """Yield the gap of every two tenants in every interval in which both were backlogged throughout.

    `served` is in the order of the decisions. Nobody may have been blocked by a cap of its own.
    """
    largest = max(run.charge for run in served)
    wrong = max(max(run.arrival.tokens - run.charge, 0) for run in served)
    wrong += max(max(run.charge - run.arrival.tokens, 0) for run in served)
    slack = {
        tenant: Fraction(largest + most_in_flight(served, tenant) * wrong, weight) for tenant, weight in weights.items()
    }
    known = backlogs(served)
    for pair in combinations(sorted(known), 2):
        own = [run for run in served if run.arrival.tenant in pair]
        moments = [run.decided_ms for run in own]
        for interval in _common(known[pair[0]], known[pair[1]]):
            runs = own[bisect_left(moments, interval.from_ms) : bisect_left(moments, interval.until_ms)]
            observed = _range(runs, pair, weights)
            yield Gap(pair, interval, observed, quantum + slack[pair[0]] + slack[pair[1]])


def _range(runs: Sequence[Served], pair: tuple[str, str], weights: Mapping[str, int]) -> Fraction:
    """Return the range in which the difference wanders: the widest gap over all parts of the interval."""
    first, second = pair
    value = low = high = Fraction(0)
    for run in runs:
        value += Fraction(run.arrival.tokens, weights[first] if run.arrival.tenant == first else -weights[second])
        low, high = min(low, value), max(high, value)
    return high - low


def _common(first: Sequence[Interval], second: Sequence[Interval]) -> list[Interval]:
    both = (Interval(max(a.from_ms, b.from_ms), min(a.until_ms, b.until_ms)) for a in first for b in second)
    return [interval for interval in both if interval.length_ms > 0]
