"""The ideal that no scheduler of whole runs can reach: at every instant capacity is divided among the backlogged.

Generalised processor sharing (A. Parekh, R. Gallager, "A Generalized Processor Sharing Approach to Flow Control in
Integrated Services Networks", 1993): work flows like a liquid, so nobody waits for anybody's run to end. At every
instant it is the weighted max-min division of `oracle`.

Virtual time and time are integers, in 2^-40 of a token and of a ms, rounded once an event: exact fractions would grow
with every event, and what they say beyond a token is of no interest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import Final, NamedTuple

_BITS: Final = 40
_HALF: Final = 1 << (_BITS - 1)


class Work(NamedTuple):
    """So many tokens of a tenant come in."""

    at_ms: int
    tenant: str
    tokens: int


class Change(NamedTuple):
    """From here on the capacity is another, in tokens per ms."""

    at_ms: int
    capacity: Fraction


def fluid(
    arrivals: Iterable[Work],
    weights: Mapping[str, int],
    capacity: Fraction,
    moments: Sequence[int],
    changes: Iterable[Change] = (),
) -> list[dict[str, int]]:
    """Return what each tenant has been served, to the nearest token, by each of the moments (ms, ascending).

    `capacity` is in tokens per ms, until it changes. At every instant the tenants with a backlog share it by weight;
    capacity is only idle if nobody has one. O(log tenants) an arrival, O(tenants) a moment.
    """
    tank = _Tank(weights, capacity)
    results: list[dict[str, int]] = []
    events: list[Work | Change | int] = [*arrivals, *changes, *moments]
    for event in sorted(events, key=_time):  # stable: at the same ms, moments are last
        if isinstance(event, int):
            tank.flow(event)
            results.append(tank.served())
        elif isinstance(event, Work):
            tank.flow(event.at_ms)
            tank.add(event.tenant, event.tokens)
        else:
            tank.flow(event.at_ms)
            tank.capacity = event.capacity
    return results


def _time(event: Work | Change | int) -> int:
    return event if isinstance(event, int) else event.at_ms


class _Tank:
    """The backlogs, by virtual time: tokens that whoever has had a backlog all the time was served per weight.

    A tenant runs dry when the virtual time reaches what it was at when its backlog began, and its tokens per weight.
    """

    def __init__(self, weights: Mapping[str, int], capacity: Fraction) -> None:
        self.capacity = capacity
        self._weights = weights
        self._now = 0
        self._virtual = 0
        self._busy = 0  # the weights of those with a backlog
        self._dry: dict[str, int] = {}  # of each of those, the virtual time at which it runs dry
        self._heap: list[tuple[int, str]] = []  # of the same; what `_dry` no longer says is void
        self._asked = dict.fromkeys(weights, 0)

    def add(self, tenant: str, tokens: int) -> None:
        """Let tokens (> 0) come in."""
        weight = self._weights[tenant]
        self._asked[tenant] += tokens
        if tenant not in self._dry:
            self._busy += weight
        self._dry[tenant] = self._dry.get(tenant, self._virtual) + (tokens << _BITS) // weight
        heappush(self._heap, (self._dry[tenant], tenant))

    def flow(self, until_ms: int) -> None:
        """Serve until `until_ms`, from one tenant's running dry to the next."""
        until = until_ms << _BITS
        while self._dry and self.capacity and self._now < until:
            first, tenant = self._heap[0]
            if self._dry.get(tenant) != first:
                heappop(self._heap)
                continue
            tokens, ms = self.capacity.numerator, self.capacity.denominator * self._busy
            span = (first - self._virtual) * ms // tokens
            if self._now + span > until:
                self._virtual += (until - self._now) * tokens // ms
                break
            self._now += span
            self._virtual = first
            self._end(tenant)
        self._now = until

    def served(self) -> dict[str, int]:
        """Return what each has been served by now, to the nearest token."""
        return {tenant: asked - self._left(tenant) for tenant, asked in self._asked.items()}

    def _left(self, tenant: str) -> int:
        dry = self._dry.get(tenant, self._virtual)
        return (self._weights[tenant] * (dry - self._virtual) + _HALF) >> _BITS

    def _end(self, tenant: str) -> None:
        heappop(self._heap)
        del self._dry[tenant]
        self._busy -= self._weights[tenant]
        if not self._dry:  # begin anew, with small numbers
            self._heap.clear()
            self._virtual = 0
