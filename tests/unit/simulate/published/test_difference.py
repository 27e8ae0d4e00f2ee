"""The measure, held against the artifact's own recordings: they give the figures that were published."""

import pytest

from streams.simulate.published.difference import Difference, difference, price
from streams.simulate.published.engine import Answer, Request
from streams.simulate.published.figures import SCHEDULERS
from tests.unit.simulate.published.recorded import RUNS, recorded

S = 1_000_000


@pytest.mark.parametrize(("run", "index"), RUNS)
def test_the_recordings_give_the_published_figures(run: str, index: int) -> None:
    found = difference(recorded(run))
    assert Difference(round(found.largest), round(found.mean)) == SCHEDULERS[index].published


def test_output_is_priced_twice_input() -> None:
    assert price(Request(0, "a", "1", 10, 100)) == 210


def test_who_is_answered_at_once_makes_no_difference() -> None:
    """One request a second, each answered within its second: asked and got are equal but at a minute's edges."""
    answers = [
        Answer(Request(second * S, "a", str(second), 0, 50), second * S, second * S + S) for second in range(700)
    ]
    answers += [
        Answer(Request(second * S, "b", f"b{second}", 0, 50), second * S, second * S + S) for second in range(700)
    ]
    found = difference(answers)
    assert found.largest <= 2 * 2 * 100 / 60  # one request of each of the two, at either edge


def test_nobody_misses_more_than_what_the_best_served_has_beyond_it() -> None:
    """Two tenants ask for 60 a second each, for ten minutes; `a` gets 40 of it all the time, `b` half as much."""
    answers = [
        Answer(Request(second * S, tenant, f"{tenant}{second}", 60, 0), 0, 600 * S * (1 if tenant == "a" else 2))
        for second in range(600)
        for tenant in "ab"
    ]
    found = difference(answers)
    assert found.mean == pytest.approx(0 + 30, abs=2)  # `a` is the best served; `b` has 30 less than that


def test_it_is_a_sum_over_tenants() -> None:
    answers = [
        Answer(Request(second * S, tenant, f"{tenant}{second}", 60, 0), 0, 600 * S * (1 if tenant == "a" else 2))
        for second in range(600)
        for tenant in "abc"
    ]
    assert difference(answers).mean == pytest.approx(60, abs=4)
