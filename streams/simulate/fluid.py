"""The ideal that no scheduler of whole runs can reach: at every instant capacity is divided among the backlogged.

Generalised processor sharing (A. Parekh, R. Gallager, "A Generalized Processor Sharing Approach to Flow Control in
Integrated Services Networks", 1993): work flows like a liquid, so nobody waits for anybody's run to end.
Exact, in fractions.
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


def fluid(
    arrivals: Iterable[Work], weights: Mapping[str, int], capacity: Fraction, moments: Sequence[int]
) -> list[dict[str, Fraction]]:
    """Return what each tenant has been served, in tokens, by each of the moments (ms, ascending).

    `capacity` is in tokens per ms. At every instant the tenants with a backlog share it by weight; capacity is only
    idle if nobody has one.
    """
    tank = _Tank(dict.fromkeys(weights, Fraction(0)), dict.fromkeys(weights, Fraction(0)), Fraction(0))
    results: list[dict[str, Fraction]] = []
    events = sorted([(work.at_ms, 0, work) for work in arrivals] + [(at, 1, None) for at in moments], key=_time)
    for at_ms, _, work in events:
        tank.flow(weights, capacity, Fraction(at_ms))
        if work is None:
            results.append(dict(tank.served))
        else:
            tank.backlog[work.tenant] += work.tokens
    return results


def _time(event: tuple[int, int, Work | None]) -> tuple[int, int]:
    return event[:2]


@dataclass
class _Tank:
    served: dict[str, Fraction]
    backlog: dict[str, Fraction]
    now: Fraction

    def flow(self, weights: Mapping[str, int], capacity: Fraction, until: Fraction) -> None:
        """Serve until `until`, from one tenant's running dry to the next."""
        while self.now < until:
            busy = [tenant for tenant, tokens in self.backlog.items() if tokens]
            if not busy:
                break
            per_weight = capacity / sum(weights[tenant] for tenant in busy)
            first_dry = min(self.backlog[tenant] / (per_weight * weights[tenant]) for tenant in busy)
            span = min(until - self.now, first_dry)
            for tenant in busy:
                tokens = span * per_weight * weights[tenant]
                self.served[tenant] += tokens
                self.backlog[tenant] -= tokens
            self.now += span
        self.now = until
