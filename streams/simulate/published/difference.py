"""The measure of the published figures: by how much tenants get less, or more, than they might.

At 19 moments, 28.5 s apart, the minute around each is looked at. In it, per tenant, in tokens a second at their price:

    asked   price of the requests that it filed in that minute
    got     price of the requests that were answered, each spread evenly from its first token to its last

A tenant's difference is |asked - got|, but no more than what the best served tenant got beyond it; the difference of
the moment is the sum over all tenants. The figures are the largest and the mean over the moments.

It is the one of the artifact (`get_service_diff_over_time`, with the settings of `plot_revision.py`), whose own
recordings give its published figures by it. Note what it counts: a tenant that gets in a minute more than it filed in
that minute, since it waited before, makes a difference too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from streams.simulate.published.engine import Answer, Request

INPUT_PRICE: Final = 1
OUTPUT_PRICE: Final = 2

_US: Final = 1_000_000
_WARM_UP_US: Final = 30 * _US
_WINDOW_US: Final = 60 * _US
_EVERY_US: Final = 28_500_000  # a twentieth of what is left of ten minutes after the warm-up
MOMENTS_US: Final = tuple(_WARM_UP_US + number * _EVERY_US for number in range(1, 20))


class Difference(NamedTuple):
    """In tokens a second, at their price."""

    largest: float
    mean: float


def price(request: Request) -> int:
    """Return what a request costs, in tokens of input."""
    return INPUT_PRICE * request.input_tokens + OUTPUT_PRICE * request.output_tokens


def differences(answers: Sequence[Answer]) -> tuple[float, ...]:
    """Return the difference of each of `MOMENTS_US`, for the requests of ten minutes."""
    return tuple(_at(answers, moment) / _US for moment in MOMENTS_US)


def difference(answers: Sequence[Answer]) -> Difference:
    """Return the two figures for the requests of ten minutes."""
    found = differences(answers)
    return Difference(max(found), sum(found) / len(found))


def _at(answers: Sequence[Answer], middle_us: int) -> int:
    """Return the sum of the differences around a moment, in millionths of a token a second."""
    from_us, until_us = middle_us - _WINDOW_US // 2, middle_us + _WINDOW_US // 2
    asked: defaultdict[str, int] = defaultdict(int)
    got: defaultdict[str, int] = defaultdict(int)
    for request, first_us, ended_us in answers:
        worth = price(request) * _US * _US // _WINDOW_US
        got[request.tenant] += 0
        if from_us <= request.at_us <= until_us:
            asked[request.tenant] += worth
        overlap = min(until_us, ended_us) - max(from_us, first_us)
        if overlap > 0:
            got[request.tenant] += worth * overlap // (ended_us - first_us)
    best = max(got.values())
    return sum(min(best - mine, abs(asked[tenant] - mine)) for tenant, mine in got.items())
