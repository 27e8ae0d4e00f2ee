from fractions import Fraction

import pytest

from streams.simulate.backlog import Contest, Interval
from streams.simulate.pool import Served
from streams.simulate.report import Share, jain, makespan_ms, shares
from streams.simulate.waits import Waits, percentile, waits
from streams.simulate.workload import Arrival


def run(tenant: str, at_ms: int, decided_ms: int, tokens: int = 10) -> Served:
    arrival = Arrival(at_ms, tenant, f"{tenant}{at_ms}", "work", tokens, 10)
    return Served(arrival, tokens, decided_ms, decided_ms + 1, decided_ms + 11)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 50, 7), ([7], 95, 7), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 101)), 95, 95), ([1, 2], 100, 2)],
)
def test_percentile_is_by_nearest_rank(values: list[int], percent: int, expected: int) -> None:
    assert percentile(values, percent) == expected


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1], 0), ([1], 101)])
def test_a_percentile_of_nothing_is_a_mistake(values: list[int], percent: int) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, percent)


def test_waits_are_told_by_tenant_in_the_order_of_their_first_arrivals() -> None:
    found = waits([run("b", 5, 9), run("a", 10, 10), run("b", 6, 6), run("a", 0, 99)])
    assert list(found) == ["a", "b"]
    assert found["a"] == Waits(runs=2, first=100, p50=1, p95=100, longest=100)
    assert found["b"] == Waits(runs=2, first=5, p50=1, p95=5, longest=5)


def test_the_stated_share_is_max_min_of_what_was_asked_for() -> None:
    served = [run("big", 0, at, tokens=30) for at in range(10, 20)] + [run("small", 12, 13, tokens=20)]
    found = shares(served, Contest(Interval(10, 20), ("big",)), {"big": 1, "small": 4})
    assert found == {"big": Share(1, 300, 300, 300), "small": Share(4, 20, 20, 20)}


def test_who_was_backlogged_all_the_time_could_have_used_any_amount() -> None:
    # Both got all they had asked for when the interval ended; by weight `b` should have had twice as much as `a`.
    served = [run("a", 0, at) for at in range(10, 20)] + [run("b", 0, at) for at in range(10, 20)]
    found = shares(served, Contest(Interval(10, 20), ("a", "b")), {"a": 1, "b": 3})
    assert found == {"a": Share(1, 100, 50, 100), "b": Share(3, 100, 150, 100)}


def test_what_is_out_of_the_interval_counts_for_nobody() -> None:
    served = [
        run("a", 0, 9),  # gone before
        run("a", 0, 10),  # queued when it begins
        run("b", 19, 25),  # filed in it, served after it
        run("b", 20, 20),  # filed after it
    ]
    found = shares(served, Contest(Interval(10, 20), ()), {"a": 1, "b": 1})
    assert found == {"a": Share(1, 10, 5, 10), "b": Share(1, 10, 5, 0)}


def test_stated_and_observed_divide_the_same_amount() -> None:
    served = [run("a", 0, at, tokens=7) for at in range(10)] + [run("b", 0, at, tokens=3) for at in range(10)]
    found = shares(served, Contest(Interval(0, 5), ()), {"a": 1, "b": 2})
    assert sum(share.stated for share in found.values()) == sum(share.observed for share in found.values()) == 50
    assert [share.stated for share in found.values()] == [20, 30]


def test_jain() -> None:
    assert jain([Fraction(3), Fraction(3), Fraction(3)]) == 1
    assert jain([Fraction(1), Fraction(0), Fraction(0), Fraction(0)]) == Fraction(1, 4)
    assert jain([]) == jain([Fraction(0)]) == 1


def test_makespan() -> None:
    assert makespan_ms([]) == 0
    assert makespan_ms([run("a", 5, 9), run("b", 7, 7)]) == 15
