"""The observed gap between two backlogged tenants against the bound that `streams.core` states.

Over any interval in which tenants i and j stay backlogged and unblocked (S: tokens of the runs handed out in it, at
their true cost; f: weight; the rest as in the docstring of `streams.core`):

    |S_i / f_i - S_j / f_j|  <=  Q + (E + K_i D) / f_i + (E + K_j D) / f_j

A newcomer's first visit is in the round after the one in which it came, and everybody else's is before it in both: to
intervals that begin before it another quantum is added.

In all of it `served` is in the order of the decisions. E and D are taken over all of it, K over the tenant's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from streams.simulate.backlog import Contest, Interval, backlogs, overlaps
from streams.simulate.pool import Served


class Gap(NamedTuple):
    """The widest gap between two tenants over every part of an interval, in tokens per unit of weight."""

    first: str
    second: str
    observed: Fraction
    bound: Fraction
    interval: Interval  # in which both were backlogged all the time

    @property
    def holds(self) -> bool:
        """Whether the bound was kept."""
        return self.observed <= self.bound


def gaps(served: Sequence[Served], contest: Contest, weights: Mapping[str, int], quantum: int) -> list[Gap]:
    """Return the gap of every pair of the contest's tenants, over the contest."""
    measure = _Measure(served, weights, quantum)
    return [measure.gap(first, second, contest.interval) for first, second in combinations(contest.tenants, 2)]


def gaps_everywhere(served: Sequence[Served], weights: Mapping[str, int], quantum: int) -> Iterator[Gap]:
    """Yield the gap of every two tenants in every interval in which both were backlogged throughout."""
    measure = _Measure(served, weights, quantum)
    known = backlogs(served)
    for first, second in combinations(sorted(known), 2):
        for interval in overlaps(known[first], known[second]):
            yield measure.gap(first, second, interval)


def most_in_flight(served: Iterable[Served], tenant: str) -> int:
    """Return how many runs of the tenant were in flight at most; an end counts before a decision of the same moment."""
    own = [run for run in served if run.arrival.tenant == tenant]
    steps = [(run.decided_ms, 1) for run in own] + [(run.ended_ms, -1) for run in own]
    most = flying = 0
    for _, change in sorted(steps):
        flying += change
        most = max(most, flying)
    return most


class _Measure:
    """What the gaps of all pairs have in common."""

    def __init__(self, served: Sequence[Served], weights: Mapping[str, int], quantum: int) -> None:
        self._weights = weights
        self._quantum = quantum
        self._runs: dict[str, list[tuple[int, Served]]] = defaultdict(list)  # with their places in the order
        for place, run in enumerate(served):
            self._runs[run.arrival.tenant].append((place, run))
        self._moments = {tenant: [run.decided_ms for _, run in runs] for tenant, runs in self._runs.items()}
        largest = max((run.charge for run in served), default=0)
        under = max((run.arrival.tokens - run.charge for run in served), default=0)
        over = max((run.charge - run.arrival.tokens for run in served), default=0)
        error = max(under, 0) + max(over, 0)
        self._slack = {
            tenant: Fraction(largest + most_in_flight((run for _, run in runs), tenant) * error, weights[tenant])
            for tenant, runs in self._runs.items()
            if tenant in weights
        }

    def gap(self, first: str, second: str, interval: Interval) -> Gap:
        """Return the range in which the difference of services wanders: the largest gap over all parts of it."""
        # Times both weights, to stay in integers.
        signed = {first: self._weights[second], second: -self._weights[first]}
        value = low = high = 0
        for _, run in sorted(self._inside(first, interval) + self._inside(second, interval)):
            value += run.arrival.tokens * signed[run.arrival.tenant]
            low, high = min(low, value), max(high, value)
        observed = Fraction(high - low, self._weights[first] * self._weights[second])
        new = any(interval.from_ms < self._moments[tenant][0] for tenant in signed)
        bound = (2 if new else 1) * self._quantum + self._slack[first] + self._slack[second]
        return Gap(first, second, observed, bound, interval)

    def _inside(self, tenant: str, interval: Interval) -> list[tuple[int, Served]]:
        moments = self._moments[tenant]
        return self._runs[tenant][bisect_left(moments, interval.from_ms) : bisect_left(moments, interval.until_ms)]
