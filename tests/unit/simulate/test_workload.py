from dataclasses import replace
from random import Random

import pytest

from streams.errors import ConfigError
from streams.simulate.costs import Always, Around, Guess, HeavyTail, InTurns, PowerTail
from streams.simulate.workload import Load, duration_ms, make_workload, tokens_by_tenant


def load(tenant: str, runs: int = 50) -> Load:
    return Load(tenant=tenant, runs=runs, costs=HeavyTail(1_000), from_ms=100, until_ms=900)


def test_the_same_seed_gives_the_same_workload_and_another_another() -> None:
    first = make_workload([load("a"), load("b")], seed=1, tokens_per_s=100)
    assert first == make_workload([load("a"), load("b")], seed=1, tokens_per_s=100)
    assert first != make_workload([load("a"), load("b")], seed=2, tokens_per_s=100)


def test_this_very_workload_comes_out_on_every_machine() -> None:
    arrival = make_workload([load("a", runs=1)], seed=7, tokens_per_s=100)[0]
    assert (arrival.at_ms, arrival.tokens, arrival.duration_ms) == (448, 1_434, 14_340)


def test_a_tenant_files_the_same_whoever_else_does() -> None:
    alone = make_workload([load("a")], seed=1, tokens_per_s=100)
    among = make_workload([load("a"), load("b")], seed=1, tokens_per_s=100)
    assert alone == tuple(arrival for arrival in among if arrival.tenant == "a")


def test_arrivals_come_in_order_inside_their_interval_with_unique_ids() -> None:
    arrivals = make_workload([load("a"), load("b")], seed=1, tokens_per_s=100)
    assert [a.at_ms for a in arrivals] == sorted(a.at_ms for a in arrivals)
    assert all(100 <= a.at_ms < 900 for a in arrivals)
    assert len({(a.tenant, a.run_id) for a in arrivals}) == 100
    assert set(tokens_by_tenant(arrivals)) == {"a", "b"}
    assert sum(tokens_by_tenant(arrivals).values()) == sum(a.tokens for a in arrivals)


def test_the_tail_is_heavy_and_bounded() -> None:
    random = Random(3)
    costs = sorted(HeavyTail(7_000).draw(random, 0) for _ in range(5_000))
    assert costs[0] >= 1_000
    assert costs[-1] <= 49_000
    assert costs[-1] > 40 * costs[0]
    assert 6_000 < costs[2_500] < 8_000


@pytest.mark.parametrize(("tokens", "expected"), [(1, 10), (10, 100), (11, 110), (0, 1)])
def test_duration(tokens: int, expected: int) -> None:
    assert duration_ms(tokens, 100) == expected


def test_duration_rounds_up() -> None:
    assert duration_ms(1, 3_000) == 1
    assert duration_ms(4, 3_000) == 2


@pytest.mark.parametrize(
    "bad",
    [
        Load(tenant="a", runs=-1, costs=HeavyTail(1), from_ms=0, until_ms=1),
        Load(tenant="a", runs=1, costs=HeavyTail(1), from_ms=-1, until_ms=1),
        Load(tenant="a", runs=1, costs=HeavyTail(1), from_ms=1, until_ms=1),
    ],
)
def test_a_load_that_cannot_be_is_refused(bad: Load) -> None:
    with pytest.raises(ConfigError, match="a"):
        make_workload([bad], seed=1, tokens_per_s=1)


def test_a_speed_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="tokens_per_s"):
        make_workload([], seed=1, tokens_per_s=0)


def test_bursts_come_again_and_again() -> None:
    bursts = Load(tenant="a", runs=5, costs=Always(7), from_ms=10, until_ms=20, times=3, every_ms=100)
    arrivals = make_workload([bursts], seed=1, tokens_per_s=1_000)
    assert [arrival.at_ms // 100 for arrival in arrivals] == [0] * 5 + [1] * 5 + [2] * 5
    assert all(10 <= arrival.at_ms % 100 < 20 for arrival in arrivals)
    assert {arrival.tokens for arrival in arrivals} == {7}


@pytest.mark.parametrize(("workflows", "names"), [(1, {"w"}), (3, {"w-0", "w-1", "w-2"}), (None, {"w-0", "w-4"})])
def test_workflows_are_taken_in_turn(workflows: int | None, names: set[str]) -> None:
    named = Load(tenant="a", runs=5, costs=Always(7), from_ms=0, until_ms=9, workflow="w", workflows=workflows)
    assert names <= {arrival.workflow for arrival in make_workload([named], seed=1, tokens_per_s=1_000)}


def test_guesses_are_the_truth_times_factors_in_turn_and_never_nothing() -> None:
    guessed = Load(tenant="a", runs=4, costs=Always(8), from_ms=0, until_ms=9, guess=Guess((0.25, 10, 0)))
    arrivals = make_workload([guessed], seed=1, tokens_per_s=1_000)
    assert [arrival.estimate for arrival in sorted(arrivals, key=lambda each: each.run_id)] == [2, 80, 1, 2]
    assert all(arrival.estimate is None for arrival in make_workload([load("a")], seed=1, tokens_per_s=1_000))


def test_costs_in_turns() -> None:
    random, costs = Random(1), InTurns(((2, 100), (1, 10_000)))
    drawn = [costs.draw(random, number) for number in range(6)]
    assert [tokens > 1_000 for tokens in drawn] == [False, False, True] * 2
    assert all(80 <= tokens <= 120 or 8_000 <= tokens <= 12_000 for tokens in drawn)


def test_a_power_tail_is_cut_off_and_most_of_it_is_small() -> None:
    random, costs = Random(1), PowerTail(100, most=5_000)
    drawn = sorted(costs.draw(random, 0) for _ in range(2_000))
    assert (drawn[0], drawn[-1]) == (100, 5_000)
    assert drawn[1_000] < 200


def test_around() -> None:
    random = Random(1)
    assert {Around(10).draw(random, 0) for _ in range(500)} == set(range(5, 16))


def test_a_tenant_has_one_load() -> None:
    with pytest.raises(ConfigError, match="one load"):
        make_workload([load("a"), load("a")], seed=1, tokens_per_s=1)


@pytest.mark.parametrize(
    "bad", [replace(load("a"), times=0), replace(load("a"), every_ms=-1), replace(load("a"), workflows=0)]
)
def test_a_load_that_cannot_be(bad: Load) -> None:
    with pytest.raises(ConfigError, match="a load needs"):
        make_workload([bad], seed=1, tokens_per_s=1)
