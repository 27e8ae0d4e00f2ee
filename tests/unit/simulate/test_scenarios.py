import gzip
from pathlib import Path

import pytest

from streams.core.policy_check import parse_policy, policy_document
from streams.errors import ConfigError
from streams.simulate.scenarios.catalogue import SCENARIOS, find_scenario
from streams.simulate.scenarios.recorded import trace_story
from streams.simulate.traces import AZURE, Prices, bundled, read_trace

HEAD = "at_s,tenant,id,input_tokens,output_tokens"
NAMES = pytest.mark.parametrize("name", SCENARIOS)


@NAMES
def test_each_says_in_a_sentence_what_it_shows(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.shows.endswith(".")
    assert len(scenario.name) + 2 + len(scenario.shows) <= 125


@NAMES
def test_each_is_a_function_of_its_seed_under_a_policy_that_could_be_applied(name: str) -> None:
    told = find_scenario(name).story(4)
    assert told == find_scenario(name).story(4)
    assert told.name == name
    assert parse_policy(policy_document(told.policy)) == told.policy
    assert told.policy.window.runs == told.slots
    assert len({(each.tenant, each.run_id) for each in told.arrivals}) == len(told.arrivals)


@NAMES
def test_each_asks_for_more_than_the_pool_can_do_in_its_time(name: str) -> None:
    """Else every scheduler would do as well as any other."""
    told = find_scenario(name).story(4)
    assert sum(each.tokens for each in told.arrivals) * 1_000 > told.slots * told.tokens_per_s * told.until_ms


def test_a_scenario_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="worker-loss"):
        find_scenario("tuesday")


def test_the_trace_of_two_services_is_whole() -> None:
    rows = read_trace(bundled(AZURE))
    assert len(rows) == 28_185
    assert {row.tenant for row in rows} == {"code", "conv"}
    assert sum(row.tokens for row in rows) == 44_756_405


def trace(folder: Path, *lines: str) -> Path:
    path = folder / "mine.csv.gz"
    path.write_bytes(gzip.compress("\n".join([HEAD, *lines]).encode()))
    return path


def test_a_trace_of_ones_own(tmp_path: Path) -> None:
    path = trace(tmp_path, "0,a,1,10,90", "4,b,2,100,100", "10,a,3,0,300")
    told = trace_story(path, slots=2, tokens_per_s=None, compression=1, prices=Prices())
    # Nine tenths of 600 tokens in ten seconds, by two slots.
    assert (told.slots, told.tokens_per_s, told.policy.quantum) == (2, 27, 200)
    assert [(each.at_ms, each.tenant, each.tokens) for each in told.arrivals] == [
        (0, "a", 100),
        (4_000, "b", 200),
        (10_000, "a", 300),
    ]


def test_prices_speed_and_compression(tmp_path: Path) -> None:
    path = trace(tmp_path, "0,a,1,10,90", "10,b,2,100,100")
    told = trace_story(path, slots=None, tokens_per_s=50, compression=5, prices=Prices(3, 2))
    assert [(each.at_ms, each.tokens, each.duration_ms) for each in told.arrivals] == [
        (0, 210, 4_200),
        (2_000, 500, 10_000),
    ]
    twice = trace_story(path, slots=1, tokens_per_s=None, compression=2, prices=Prices())
    assert twice.tokens_per_s == 300 * 9 // 10 // 5  # as much in half the time


def test_a_trace_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run"):
        trace_story(trace(tmp_path), slots=1, tokens_per_s=1, compression=1, prices=Prices())


def test_a_packed_trace_that_is_broken_is_named(tmp_path: Path) -> None:
    path = trace(tmp_path, "0,a,1,10,90")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"mine\.csv\.gz"):
        read_trace(path)
