"""Cases about shares, rates and formulas: one test each, with the case's name."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from streams.core.inputs import SetPolicy
from streams.core.shard import Shard
from streams.simulate.oracle import max_min
from streams.simulate.pool import play
from streams.simulate.workload import Arrival, in_order
from tests.builders import make_policy, make_submit
from tests.conformance.cases import all_cases, queue, serial
from tests.drivers import START_MS, Driver
from tests.simulation.core_scheduler import CoreScheduler


def expected(name: str) -> dict[str, object]:
    return all_cases()[name].expect


def served(name: str, first: int) -> Counter[str]:
    """Queue the case's arrivals, and return how many of each tenant are among the first to be served."""
    case = all_cases()[name]
    driver = serial(case.quanta())
    queue(driver, case.items())
    while len(driver.dispatches) < first:
        driver.succeed(driver.dispatches[-1])
    return Counter(dispatch.tenant for dispatch in driver.dispatches[:first])


def test_chia_1000_peers_round_robin() -> None:
    """All at once, through an open window: its order is the order of service. (20 items of each peer, not 100.)"""
    peers, each = 1_000, 20
    shard = Shard(0, 1)
    shard.step([SetPolicy(0, make_policy(quantum=1, runs=None))], START_MS)
    positions = iter(range(1, peers * each + 1))
    requests = [
        make_submit(f"p{peer}", str(item), position=next(positions), cost=1)
        for peer in range(peers)
        for item in range(each)
    ]
    dispatches = shard.step(requests, START_MS).dispatches
    while shard.next_timer_ms() == START_MS:
        dispatches += shard.step([], START_MS).dispatches
    assert [(dispatch.tenant, dispatch.run_id) for dispatch in dispatches] == [
        (f"p{peer}", str(item)) for item in range(each) for peer in range(peers)
    ]


def test_dmclock_pull_weight() -> None:
    assert served("dmclock_pull_weight", 6) == expected("dmclock_pull_weight")["items"] == {"c1": 2, "c2": 4}


def test_go_lanes_5_3_2() -> None:
    case = all_cases()["go_lanes_5_3_2"]
    driver = serial(case.quanta(), doubted=False)
    queue(driver, case.items())
    while len(driver.dispatches) < 1_000:
        driver.succeed(driver.dispatches[-1])
    items = Counter(dispatch.tenant for dispatch in driver.dispatches)
    assert items == {"l0": 500, "l1": 300, "l2": 200}
    for lane, (low, high) in case.expect["items_between"].items():
        assert low <= items[lane] <= high


def test_go_lanes_5_3_2_with_an_empty_lane() -> None:
    """What `l0` leaves goes to the others by weight, 3:2. (The peer's 7:3 is its fallback weights.)"""
    driver = serial({"l1": 3, "l2": 2})
    queue(driver, [("l1", f"l1-{n}", 1) for n in range(60)] + [("l2", f"l2-{n}", 1) for n in range(60)])
    while len(driver.dispatches) < 100:
        driver.succeed(driver.dispatches[-1])
    assert Counter(dispatch.tenant for dispatch in driver.dispatches) == {"l1": 60, "l2": 40}


def test_bess_two_flows() -> None:
    """At a hundredth of the rates: one flow sends 4 times as much as the other, both more than their half."""
    case = all_cases()["bess_two_flows"]
    cost = 60
    arrivals = [
        Arrival(at_ms, flow["tenant"], f"{flow['tenant']}{n}", "flow", cost, 10, cost)
        for flow in case.arrivals
        for n, at_ms in enumerate(range(0, 3_000, 100_000 // flow["rate_per_s"]))
    ]
    # 300 a second: 3 slots, 10 ms each.
    scheduler = CoreScheduler(make_policy(quantum=1_000, runs=3))
    done = [run for run in play(in_order(arrivals), scheduler, slots=3) if run.ended_ms <= 3_000]
    rates = [sum(run.arrival.tenant == flow for run in done) * 100 / 3 for flow in ("f0", "f1")]
    jain = sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates))
    target = case.expect["jain_index"]
    assert abs(jain - target["target"]) <= target["tolerance"]
    assert jain > 0.9999
    assert rates == pytest.approx(case.expect["max_min_rate"], rel=0.02)


@pytest.mark.parametrize("vector", all_cases()["k8s_max_min_vectors"].expect["cases"])
def test_k8s_max_min_vectors(vector: dict[str, list[int]]) -> None:
    demands = {str(index): demand for index, demand in enumerate(vector["demands"])}
    shares = max_min(int(str(vector["capacity"])), demands, dict.fromkeys(demands, 1))
    assert list(shares.values()) == vector["alloc"]


@pytest.mark.parametrize("seed", range(5))
def test_temporal_unfairness_metric(seed: int) -> None:
    """The mean place of a tenant's first dispatch, over the number of tenants: for round robin (n - 1) / 2n."""
    case = all_cases()["temporal_unfairness_metric"]
    keys = [tenant["id"] for tenant in case.tenants]
    draws = Random(seed).choices(keys, [tenant["probability"] for tenant in case.tenants], k=225)
    driver = serial(dict.fromkeys(keys, 1))
    queue(driver, [(key, f"r{n}", 1) for n, key in enumerate(draws)])
    while len(driver.dispatches) < len(keys):
        driver.succeed(driver.dispatches[-1])
    came = [dispatch.tenant for dispatch in driver.dispatches]
    present = sorted(set(draws))
    assert sorted(came[: len(present)]) == present  # each tenant once before any tenant twice
    first = [came.index(key) for key in present]
    assert Fraction(sum(first), len(present) ** 2) == Fraction(len(present) - 1, 2 * len(present)) < 1


@pytest.mark.parametrize("numbers", all_cases()["vtc_refund_of_overestimate"].expect["cases"])
def test_vtc_refund_of_overestimate(numbers: dict[str, float]) -> None:
    """Tokens are charged whole, input + 2 x output; per unit of weight (2) they are the peer's numbers."""
    prices = all_cases()["vtc_refund_of_overestimate"].expect

    def tokens(output: str) -> int:
        return int(prices["input_price"] * numbers["input"] + prices["output_price"] * numbers[output])

    driver = Driver(make_policy(quantum=100, weights={"u": 2}))
    driver.submit("u", "r1", cost=tokens("predicted_output"))
    at_dispatch = driver.flow("u").charged
    if "charged_at_dispatch" in numbers:
        assert at_dispatch / 2 == numbers["charged_at_dispatch"]
    driver.succeed(driver.dispatches[0], tokens=tokens("actual_output"))
    at_end = driver.flow("u").charged
    assert at_end / 2 == numbers["final"]
    assert (at_dispatch - at_end) / 2 == numbers.get("refund_at_end", -numbers.get("extra_charge", 0.0))
