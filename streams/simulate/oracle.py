"""What would be fair: weighted max-min shares.

Whoever asks for less than its part by weight gets all it asks for; what that leaves is divided again among the
others by weight (D. Bertsekas, R. Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from streams.errors import ConfigError


def max_min(capacity: int, demands: Mapping[str, int], weights: Mapping[str, int]) -> dict[str, int]:
    """Divide `capacity` among the tenants of `demands` by their weights (> 0), all in whole tokens.

    Of the result:

    1. nobody gets more than it demands;
    2. the sum is the smaller of `capacity` and the sum of the demands;
    3. for all that get less than they demand, allocation / weight is one and the same level, and nobody's is above
       it: exactly in theory, here within the rounding of each allocation by less than one token.

    Raises `ConfigError` for a negative amount, or a weight that is missing or not positive.
    """
    _check(capacity, demands, weights)
    # By demand per weight, the modest first: each then sees what all before it have left over.
    names = sorted(demands, key=lambda name: (Fraction(demands[name], weights[name]), name))
    left, weight_left = capacity, sum(weights[name] for name in names)
    shares: dict[str, int] = {}
    for name in names:
        if demands[name] * weight_left > left * weights[name]:
            break
        shares[name] = demands[name]
        left -= demands[name]
        weight_left -= weights[name]
    # Nobody from here on can be satisfied. Rounding the running sum keeps each within one token and loses none.
    passed = given = 0
    for name in names[len(shares) :]:
        passed += weights[name]
        until = left * passed // weight_left
        shares[name] = until - given
        given = until
    return {name: shares[name] for name in demands}


def _check(capacity: int, demands: Mapping[str, int], weights: Mapping[str, int]) -> None:
    if capacity < 0:
        raise ConfigError("must not be negative", field="capacity", value=capacity)
    for name, demand in demands.items():
        if demand < 0:
            raise ConfigError("must not be negative", field=f"demand of {name}", value=demand)
        if weights.get(name, 0) <= 0:
            raise ConfigError("must be positive", field=f"weight of {name}", value=weights.get(name))
