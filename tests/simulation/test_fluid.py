"""The ideal is checked before anything is measured against it."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from streams.simulate.fluid import Change, Work, fluid
from streams.simulate.oracle import max_min

TENANTS = ("a", "b", "c")
demands = st.fixed_dictionaries({tenant: st.integers(0, 1_000) for tenant in TENANTS})
weights = st.fixed_dictionaries({tenant: st.integers(1, 9) for tenant in TENANTS})


def test_equal_tenants_share_equally() -> None:
    arrivals = [Work(0, "a", 100), Work(0, "b", 100)]
    (half, end) = fluid(arrivals, {"a": 1, "b": 1}, Fraction(2), [50, 200])
    assert half == {"a": 50, "b": 50}
    assert end == {"a": 100, "b": 100}


def test_what_one_does_not_need_the_others_get() -> None:
    arrivals = [Work(0, "a", 10), Work(0, "b", 1_000), Work(0, "c", 1_000)]
    (by_then,) = fluid(arrivals, {"a": 1, "b": 1, "c": 2}, Fraction(1), [100])
    assert by_then == {"a": 10, "b": 30, "c": 60}


def test_a_newcomer_takes_its_share_from_when_it_comes() -> None:
    arrivals = [Work(0, "a", 1_000), Work(60, "b", 1_000)]
    assert fluid(arrivals, {"a": 1, "b": 1}, Fraction(1), [60, 100]) == [{"a": 60, "b": 0}, {"a": 80, "b": 20}]


def test_capacity_is_not_saved_up() -> None:
    arrivals = [Work(500, "a", 1_000)]
    assert fluid(arrivals, {"a": 1}, Fraction(1), [500, 510]) == [{"a": 0}, {"a": 10}]


@given(demands, weights, st.integers(1, 3_000))
def test_of_a_backlog_that_is_all_there_at_first_it_makes_the_max_min_division(
    demand: dict[str, int], weight: dict[str, int], capacity: int
) -> None:
    arrivals = [Work(0, tenant, tokens) for tenant, tokens in demand.items()]
    (served,) = fluid(arrivals, weight, Fraction(1), [capacity])
    expected = max_min(capacity, demand, weight)
    assert abs(sum(served.values()) - sum(expected.values())) <= 1
    assert all(abs(served[tenant] - expected[tenant]) <= 1 for tenant in TENANTS)


@given(
    st.lists(st.builds(Work, st.integers(0, 100), st.sampled_from(TENANTS), st.integers(1, 100)), max_size=20),
    weights,
    st.lists(st.integers(0, 300), min_size=1, max_size=5).map(sorted),
)
def test_nobody_is_served_more_than_it_asked_or_less_than_before(
    arrivals: list[Work], weight: dict[str, int], moments: list[int]
) -> None:
    results = fluid(arrivals, weight, Fraction(3, 2), moments)
    before = dict.fromkeys(TENANTS, 0)
    for moment, served in zip(moments, results, strict=True):
        for tenant in TENANTS:
            asked = sum(work.tokens for work in arrivals if work.tenant == tenant and work.at_ms <= moment)
            assert before[tenant] <= served[tenant] <= asked
        assert sum(served.values()) <= Fraction(3, 2) * moment + 1  # each is the nearest whole token
        before = served


def test_capacity_that_changes() -> None:
    arrivals = [Work(0, "a", 1_000), Work(0, "b", 1_000)]
    changes = [Change(10, Fraction(0)), Change(30, Fraction(4))]
    served = fluid(arrivals, {"a": 1, "b": 1}, Fraction(2), [10, 20, 30, 40], changes)
    assert [each["a"] for each in served] == [10, 10, 10, 30]
