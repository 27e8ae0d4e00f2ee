"""The clock's one piece of logic: waiting with a deadline."""

import itertools

import pytest

from streams import clock


def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", "here", "later"])
    assert clock.wait_until(lambda: next(values), 10, 0) == "here"


def test_a_missed_deadline_names_what_was_awaited() -> None:
    with pytest.raises(TimeoutError, match=r"the moon: not within 0\.01 s"):
        clock.wait_until(lambda: False, 0.01, 0.001, what="the moon")


def test_a_deadline_of_zero_still_looks_once() -> None:
    calls = itertools.count()
    with pytest.raises(TimeoutError):
        clock.wait_until(lambda: next(calls) < 0, 0)
    assert next(calls) == 1


def test_what_the_predicate_raises_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        clock.wait_until(lambda: 1 / 0, 10)


def test_clocks_go_forward() -> None:
    assert clock.monotonic() <= clock.monotonic()
    assert clock.now_ms() > 1_700_000_000_000


def test_a_pause_is_as_long_as_it_says() -> None:
    begun = clock.monotonic()
    clock.pause(0.01)
    assert clock.monotonic() - begun >= 0.01
