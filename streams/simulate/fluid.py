"""The ideal that no scheduler of whole runs can reach: at every instant capacity is divided among the backlogged.

Generalised processor sharing (A. Parekh, R. Gallager, "A Generalized Processor Sharing Approach to Flow Control in
Integrated Services Networks", 1993): work flows like a liquid, so nobody waits for anybody's run to end. At every
instant it is the weighted max-min division of `oracle`. Exact, in fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


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
) -> list[dict[str, Fraction]]:
    """Return what each tenant has been served, in tokens, by each of the moments (ms, ascending).

    `capacity` is in tokens per ms, until it changes. At every instant the tenants with a backlog share it by weight;
    capacity is only idle if nobody has one.
    """
    tank = _Tank(
        weights, capacity, dict.fromkeys(weights, Fraction(0)), dict.fromkeys(weights, Fraction(0)), Fraction(0)
    )
    results: list[dict[str, Fraction]] = []
    events: list[Work | Change | int] = [*arrivals, *changes, *moments]
    for event in sorted(events, key=_time):  # stable: at the same ms, moments are last
        if isinstance(event, int):
            tank.flow(event)
            results.append(dict(tank.served))
        elif isinstance(event, Work):
            tank.flow(event.at_ms)
            tank.backlog[event.tenant] += event.tokens
        else:
            tank.flow(event.at_ms)
            tank.capacity = event.capacity
    return results


def _time(event: Work | Change | int) -> int:
    return event if isinstance(event, int) else event.at_ms


@dataclass
class _Tank:
    weights: Mapping[str, int]
    capacity: Fraction
    served: dict[str, Fraction]
    backlog: dict[str, Fraction]
    now: Fraction

    def flow(self, until: int) -> None:
        """Serve until `until`, from one tenant's running dry to the next."""
        while self.now < until and self.capacity:
            busy = [tenant for tenant, tokens in self.backlog.items() if tokens]
            if not busy:
                break
            per_weight = self.capacity / sum(self.weights[tenant] for tenant in busy)
            first_dry = min(self.backlog[tenant] / (per_weight * self.weights[tenant]) for tenant in busy)
            span = min(until - self.now, first_dry)
            for tenant in busy:
                tokens = span * per_weight * self.weights[tenant]
                self.served[tenant] += tokens
                self.backlog[tenant] -= tokens
            self.now += span
        self.now = Fraction(until)
