"""What happened, as plain records: one comparison of what was served with what was stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from streams.core.policy import TenantRules
from streams.simulate.backlog import Contest
from streams.simulate.oracle import max_min
from streams.simulate.pool import Served


class Share(NamedTuple):
    """What a tenant got of an interval, in tokens at their true cost."""

    weight: int
    asked: int  # queued at the beginning of the interval or filed in it
    stated: int  # its weighted max-min share of what was handed out in the interval
    observed: int  # handed out in the interval


def shares(served: Sequence[Served], contest: Contest, weights: Mapping[str, int]) -> dict[str, Share]:
    """Return the share of every tenant that asked for anything in the interval, in the order of the first arrivals.

    Whoever was backlogged all the time could have used any amount: what it asked for is no limit to its stated share.
    (It were a circle otherwise: the interval ends when one of them has been given all it asked for.)
    `sum(stated) == sum(observed)`: what is compared is the division, not the amount.
    """
    interval = contest.interval
    asked: dict[str, int] = {}
    observed: dict[str, int] = {}
    for run in sorted(served, key=lambda each: each.arrival.at_ms):
        tenant, tokens = run.arrival.tenant, run.arrival.tokens
        if run.arrival.at_ms < interval.until_ms and run.decided_ms >= interval.from_ms:
            asked[tenant] = asked.get(tenant, 0) + tokens
        if interval.contains(run.decided_ms):
            observed[tenant] = observed.get(tenant, 0) + tokens
    given = sum(observed.values())
    demands = {tenant: given if tenant in contest.tenants else tokens for tenant, tokens in asked.items()}
    stated = max_min(given, demands, weights)
    return {
        tenant: Share(weights[tenant], tokens, stated[tenant], observed.get(tenant, 0))
        for tenant, tokens in asked.items()
    }


def by_weight_alone(rules: TenantRules) -> bool:
    """Whether a tenant's weight says what its share is: it has no cap, is in no group and is not paused."""
    capped = rules.max_runs_in_flight is not None or rules.max_tokens_in_flight is not None
    return not (capped or rules.paused or rules.group)


def jain(values: Sequence[Fraction]) -> Fraction:
    """Return Jain's index of fairness: 1 if all are equal, 1/n if one has everything.

    R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC TR-301, 1984.
    """
    squares = len(values) * sum(value * value for value in values)
    return Fraction(sum(values) ** 2, squares) if squares else Fraction(1)


def makespan_ms(served: Sequence[Served]) -> int:
    """Return the time from the first arrival to the last end, in ms; 0 for nothing."""
    if not served:
        return 0
    return max(run.ended_ms for run in served) - min(run.arrival.at_ms for run in served)
