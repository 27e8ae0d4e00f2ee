"""Few points and slices, whatever the length, and nothing lost in the sums."""

from __future__ import annotations

from itertools import pairwise

from streams.audit.explain.curve import MAX_POINTS, MAX_SLICES, Curve, Point, Slices


def point(step: int) -> Point:
    return Point(
        step=step,
        at_ms=step,
        part="own",
        ahead_runs=0,
        ahead_tokens=0,
        deficit=0,
        round=1,
        flight_runs=0,
        flight_tokens=0,
        shard_flight_runs=0,
        shard_flight_tokens=0,
    )


def steps(curve: Curve, number: int) -> list[int]:
    for step in range(number):
        if curve.wants():
            curve.add(point(step))
    return [each.step for each in curve.points]


def test_a_short_life_keeps_every_step() -> None:
    assert steps(Curve(), MAX_POINTS) == list(range(MAX_POINTS))


def test_a_long_one_keeps_some_hundreds_evenly() -> None:
    kept = steps(Curve(), 10 * MAX_POINTS)
    assert MAX_POINTS // 2 < len(kept) <= MAX_POINTS
    assert {after - before for before, after in pairwise(kept)} == {16}
    assert kept[0] == 0


def test_the_end_is_there_once() -> None:
    curve = Curve()
    steps(curve, 3)
    curve.end(point(2))
    curve.end(point(7))
    assert [each.step for each in curve.points] == [0, 1, 2, 7]


def test_an_end_without_anything_before() -> None:
    curve = Curve()
    curve.end(point(7))
    assert [each.step for each in curve.points] == [7]


def test_slices_widen_and_lose_nothing() -> None:
    slices = Slices(1_000)
    slices.add(999, "a", 1)  # before the beginning: at the beginning
    slices.add(1_000, "a", 2)
    slices.add(1_001, "b", 4)
    assert list(slices) == [(1_000, {"a": 3}), (1_001, {"b": 4})]
    slices.add(1_000 + 10 * MAX_SLICES, "a", 8)
    assert slices.width_ms == 16
    assert list(slices) == [(1_000, {"a": 3, "b": 4}), (1_000 + 10 * MAX_SLICES, {"a": 8})]


def test_an_interval_fills_the_slices_that_it_lies_in() -> None:
    slices = Slices(0)
    slices.add(4 * MAX_SLICES - 1, "far", 1)
    slices.fill(2, 11, "own")
    assert slices.width_ms == 4
    assert list(slices)[:3] == [(0, {"own": 2}), (4, {"own": 4}), (8, {"own": 3})]


def test_a_long_interval_is_filled_to_its_last_ms() -> None:
    slices = Slices(7)
    slices.fill(7, 3_600_007, "outage")
    assert len(list(slices)) <= MAX_SLICES
    assert sum(amounts["outage"] for _, amounts in slices) == 3_600_000


def test_an_empty_interval_fills_nothing() -> None:
    slices = Slices(0)
    slices.fill(5, 5, "own")
    assert list(slices) == []
