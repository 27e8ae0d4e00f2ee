"""The sketch of how far off estimates are."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.ratios import HIGHEST, LOWEST, MILLION, bucket_of, error_ppm, error_quantile, halved, ratio_ppm

amounts = st.one_of(st.integers(1, 40), st.integers(1, 10**5), st.integers(1, 10**12))
sketches = st.dictionaries(st.integers(LOWEST, HIGHEST), st.integers(1, 40), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("actual", "estimate", "ratio"),
    [
        (7, 7, MILLION),
        (112, 100, MILLION),  # below the middle of 1 and 5/4
        (9, 8, 1_250_000),  # on it
        (94, 100, MILLION),
        (93, 100, 875_000),
        (4, 1, 4 * MILLION),
        (250, 1_000, 250_000),
        (1, 1_024, 976),
        (1, 1_025, 976),
        (0, 5, 976),
        (10**15, 1, 1_024 * MILLION),
    ],
)
def test_a_ratio_is_rounded_to_four_values_an_octave(actual: int, estimate: int, ratio: int) -> None:
    assert ratio_ppm(bucket_of(actual, estimate)) == ratio


@given(amounts, amounts)
def test_what_is_read_is_within_a_ninth_of_what_was_put_in(actual: int, estimate: int) -> None:
    ratio = min(max(Fraction(actual, estimate), Fraction(1, 1_024)), Fraction(1_024))
    read = Fraction(ratio_ppm(bucket_of(actual, estimate)), MILLION)
    assert abs(read - ratio) <= ratio / 9 + Fraction(1, MILLION)


@given(amounts, amounts, amounts)
def test_dearer_runs_stand_in_higher_buckets(one: int, other: int, estimate: int) -> None:
    low, high = sorted((one, other))
    assert LOWEST <= bucket_of(low, estimate) <= bucket_of(high, estimate) <= HIGHEST


def test_each_bucket_is_that_of_the_ratio_it_stands_for() -> None:
    for bucket in range(LOWEST, HIGHEST + 1):
        quarters, octave = 4 + bucket % 4, bucket // 4
        assert bucket_of(quarters << max(0, octave), 4 << max(0, -octave)) == bucket


def test_an_error_has_no_sign() -> None:
    assert [error_ppm(bucket) for bucket in (-8, -4, 0, 4, 8)] == [750_000, 500_000, 0, MILLION, 3 * MILLION]


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=60), st.integers(1, 100))
def test_a_quantile_is_the_error_that_so_many_stay_within(runs: list[tuple[int, int]], percent: int) -> None:
    buckets = [bucket_of(actual, estimate) for actual, estimate in runs]
    errors = sorted(error_ppm(bucket) for bucket in buckets)
    nearest_rank = -(-len(errors) * percent // 100)
    assert error_quantile(Counter(buckets), percent) == errors[nearest_rank - 1]


def test_an_empty_sketch_has_no_quantiles() -> None:
    with pytest.raises(ValueError, match="empty"):
        error_quantile({}, 50)


@given(sketches)
def test_halving_keeps_the_running_sums(counts: dict[int, int]) -> None:
    half = halved(counts)
    assert all(half.values())
    for bucket in range(LOWEST, HIGHEST + 1):
        below = sum(count for each, count in counts.items() if each <= bucket)
        assert sum(count for each, count in half.items() if each <= bucket) == below // 2


def test_halving_keeps_a_tail_that_is_spread_thin() -> None:
    """Half of each count, rounded down, would forget all runs that stand alone in their buckets."""
    counts = {0: 100} | dict.fromkeys(range(1, 31), 1)
    assert halved(counts) == {0: 50} | dict.fromkeys(range(2, 31, 2), 1)
