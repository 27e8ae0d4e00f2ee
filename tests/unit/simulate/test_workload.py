from random import Random

import pytest

from streams.errors import ConfigError
from streams.simulate.costs import HeavyTail
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
