import math

import pytest

from streams.core.policy import Window
from streams.errors import ConfigError
from streams.simulate.scenarios.competition import COMPETITIONS
from tests.unit.simulate.stories import small_story


def test_it_lasts_as_long_as_it_says_or_until_the_last_arrival() -> None:
    told = small_story()
    assert told.until_ms == 4_000
    assert told.lasting(1 / 360).until_ms == 1_000  # 10 s of the story, played ten times as fast


def test_a_longer_time_is_the_same_traffic_again_under_new_names() -> None:
    told = small_story()
    longer = told.lasting(100 / 3_600)  # 100 s: two and a half times
    runs = len(told.arrivals)
    assert longer.arrivals[:runs] == told.arrivals
    again = longer.arrivals[runs : 2 * runs]
    assert [(each.at_ms - 4_000, each.tokens) for each in again] == [
        (each.at_ms, each.tokens) for each in told.arrivals
    ]
    assert len({(each.tenant, each.run_id) for each in longer.arrivals}) == len(longer.arrivals)
    assert max(each.at_ms for each in longer.arrivals) < longer.until_ms == 10_000


def test_a_shorter_time_cuts_it_off() -> None:
    shorter = small_story().lasting(1 / 3_600)
    assert 0 < len(shorter.arrivals) < len(small_story().arrivals)
    assert shorter.arrivals[-1].at_ms < 100


@pytest.mark.parametrize("hours", [0, -1, 1e-9, math.nan, math.inf, 1e300])
def test_no_time_is_refused(hours: float) -> None:
    with pytest.raises(ConfigError, match="hours"):
        small_story().lasting(hours)


def test_another_number_of_slots_is_another_window() -> None:
    told = small_story().on(9)
    assert (told.slots, told.policy.window) == (9, Window(runs=9))


@pytest.mark.parametrize("name", ["many-shards", "worker-loss"])
def test_too_few_slots_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="slots"):
        COMPETITIONS[name].story(name, 1).on(3)


def test_who_reports_nothing() -> None:
    told = COMPETITIONS["no-usage"].story("no-usage", 1)
    assert {told.reported(each) for each in told.arrivals if each.tenant == "nothing"} == {0}
    assert all(told.reported(each) == each.tokens for each in told.arrivals if each.tenant != "nothing")
