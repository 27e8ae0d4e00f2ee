from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import ConfigError
from streams.simulate.oracle import max_min


@pytest.mark.parametrize(
    ("capacity", "demands", "expected"),
    [
        (42, [0, 0], [0, 0]),
        (42, [47, 0], [42, 0]),
        (42, [1, 47], [1, 41]),
        (14, [3, 7, 9, 1], [3, 5, 5, 1]),
        (100, [30, 40], [30, 40]),  # room for all
        (10, [50, 50, 50], [3, 3, 4]),  # 10/3 each, rounded so that nothing is lost
        (0, [5, 5], [0, 0]),
    ],
)
def test_equal_weights(capacity: int, demands: list[int], expected: list[int]) -> None:
    names = [f"t{n}" for n in range(len(demands))]
    shares = max_min(capacity, dict(zip(names, demands, strict=True)), dict.fromkeys(names, 1))
    assert list(shares.values()) == expected


def test_weights_divide_what_the_modest_leave() -> None:
    shares = max_min(100, {"small": 4, "gold": 500, "silver": 500}, {"small": 2, "gold": 3, "silver": 1})
    assert shares == {"small": 4, "gold": 72, "silver": 24}


def test_a_large_weight_does_not_get_more_than_it_asks_for() -> None:
    assert max_min(100, {"gold": 10, "silver": 500}, {"gold": 1_000, "silver": 1}) == {"gold": 10, "silver": 90}


@pytest.mark.parametrize(("capacity", "demand", "weight"), [(-1, 1, 1), (1, -1, 1), (1, 1, 0), (1, 1, -2)], ids=str)
def test_what_cannot_be_is_refused(capacity: int, demand: int, weight: int) -> None:
    with pytest.raises(ConfigError):
        max_min(capacity, {"t": demand}, {"t": weight})


def test_a_missing_weight_is_refused() -> None:
    with pytest.raises(ConfigError, match="weight of t"):
        max_min(1, {"t": 1}, {})


@given(
    capacity=st.integers(0, 10**6),
    tenants=st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 50)), min_size=1, max_size=12),
)
def test_the_postconditions_hold(capacity: int, tenants: list[tuple[int, int]]) -> None:
    demands = {f"t{n}": demand for n, (demand, _) in enumerate(tenants)}
    weights = {f"t{n}": weight for n, (_, weight) in enumerate(tenants)}
    shares = max_min(capacity, demands, weights)
    assert list(shares) == list(demands)
    assert all(0 <= shares[name] <= demands[name] for name in demands)
    assert sum(shares.values()) == min(capacity, sum(demands.values()))
    # Nobody has more for its weight than someone who was not satisfied, each rounded by less than 1.
    unsatisfied = [name for name, demand in demands.items() if shares[name] < demand]
    for short, other in product(unsatisfied, demands):
        assert (shares[other] - 1) * weights[short] < (shares[short] + 1) * weights[other]
