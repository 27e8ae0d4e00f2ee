"""The observed gap between two backlogged tenants against the bound that `streams.core` states.

Over any interval in which tenants i and j stay backlogged and unblocked (S: tokens of the runs handed out in it, at
their true cost; f: weight; the rest as in the docstring of `streams.core`):

    |S_i / f_i - S_j / f_j|  <=  Q + (E + K_i D) / f_i + (E + K_j D) / f_j
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from streams.simulate.backlog import Contest
from streams.simulate.pool import Served


class Gap(NamedTuple):
    """The widest gap between two tenants over every part of an interval, in tokens per unit of weight."""

    first: str
    second: str
    observed: Fraction
    bound: Fraction

    @property
    def holds(self) -> bool:
        """Whether the bound was kept."""
        return self.observed <= self.bound


def gaps(served: Sequence[Served], contest: Contest, weights: Mapping[str, int], quantum: int) -> list[Gap]:
    """Return the gap of every pair of the contest's tenants.

    `served` must be in the order of the decisions. E and D are taken over all of it, K over the tenant's.
    """
    largest = max(run.charge for run in served)
    under = max(max(run.arrival.tokens - run.charge, 0) for run in served)
    over = max(max(run.charge - run.arrival.tokens, 0) for run in served)
    slack = {
        name: Fraction(largest + most_in_flight(served, name) * (under + over), weights[name])
        for name in contest.tenants
    }
    return [
        Gap(first, second, _widest(served, contest, first, second, weights), quantum + slack[first] + slack[second])
        for first, second in combinations(contest.tenants, 2)
    ]


def most_in_flight(served: Sequence[Served], tenant: str) -> int:
    """Return how many runs of the tenant were in flight at most; an end counts before a decision of the same moment."""
    steps = [(run.decided_ms, 1) for run in served if run.arrival.tenant == tenant]
    steps += [(run.ended_ms, -1) for run in served if run.arrival.tenant == tenant]
    most = flying = 0
    for _, change in sorted(steps):
        flying += change
        most = max(most, flying)
    return most


def _widest(
    served: Sequence[Served], contest: Contest, first: str, second: str, weights: Mapping[str, int]
) -> Fraction:
    """Return the range in which the difference of services wanders: the largest gap over all parts of the interval."""
    signed = {first: weights[second], second: -weights[first]}  # times both weights, to stay in integers
    value = low = high = 0
    for run in served:
        if run.arrival.tenant in signed and contest.interval.contains(run.decided_ms):
            value += run.arrival.tokens * signed[run.arrival.tenant]
            low, high = min(low, value), max(high, value)
    return Fraction(high - low, weights[first] * weights[second])
