"""The window, and a shard's part of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import policy
from streams.core.window import Window, even_part


@given(st.integers(1, 1_000), st.integers(1, 50))
def test_the_parts_sum_to_the_whole_and_differ_by_one_at_most(total: int, shards: int) -> None:
    parts = [even_part(total, shard, shards) for shard in range(shards)]
    known = [part for part in parts if part is not None]
    assert len(known) == shards
    assert max(known) - min(known) <= 1
    assert sum(known) == max(total, shards)  # below the number of shards each still has one place


def test_no_limit_has_no_parts() -> None:
    assert even_part(None, 0, 3) is None


def sized(runs: int | None, tokens: int | None) -> Window:
    window = Window()
    window.resize(policy.Window(runs=runs, tokens=tokens), 0, 1)
    return window


def test_without_limits_all_fits() -> None:
    window = sized(None, None)
    window.runs = window.tokens = 10**9
    assert window.has_place()
    assert window.fits(10**9)


@pytest.mark.parametrize(("held", "place"), [(0, True), (2, True), (3, False), (4, False)])
def test_places(held: int, place: bool) -> None:
    window = sized(3, None)
    window.runs = held
    assert window.has_place() is place


@pytest.mark.parametrize(("tokens", "fits"), [(40, True), (41, False), (1_000, False)])
def test_tokens(tokens: int, fits: bool) -> None:
    window = sized(None, 100)
    window.runs, window.tokens = 1, 60
    assert window.fits(tokens) is fits


def test_a_run_bigger_than_the_whole_window_goes_alone() -> None:
    window = sized(None, 100)
    assert window.fits(1_000)


def test_a_smaller_limit_leaves_what_is_in_flight() -> None:
    window = sized(3, 100)
    window.runs, window.tokens = 3, 100
    window.resize(policy.Window(runs=1, tokens=10), 0, 1)
    assert (window.runs, window.tokens, window.has_place(), window.fits(1)) == (3, 100, False, False)
