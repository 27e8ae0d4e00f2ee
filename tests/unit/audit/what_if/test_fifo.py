import pytest

from streams.audit.what_if.fifo import WindowedFifo
from streams.core.policy import Policy, Window
from streams.simulate.baselines import Fifo
from streams.simulate.costs import HeavyTail
from streams.simulate.deficit_round_robin import Stated
from streams.simulate.pool import play
from streams.simulate.workload import Arrival, Load, make_workload


def windowed(runs: int | None, tokens: int | None = None, *, at_ms: int = 0) -> Stated:
    return Stated(at_ms, Policy(window=Window(runs=runs, tokens=tokens)))


def arrival(at_ms: int, run: int = 0, *, tokens: int = 10, duration_ms: int = 10) -> Arrival:
    return Arrival(at_ms, "a", f"r{at_ms}-{run}", "work", tokens, duration_ms)


@pytest.mark.parametrize("slots", [1, 5])
def test_in_a_window_of_runs_it_is_the_pools_own(slots: int) -> None:
    loads = [Load(tenant=name, runs=60, costs=HeavyTail(200), from_ms=0, until_ms=400) for name in ("a", "b")]
    arrivals = make_workload(loads, seed=3, tokens_per_s=1_000)
    assert play(arrivals, WindowedFifo([windowed(slots)]), slots=None) == play(arrivals, Fifo(), slots=slots)


def test_tokens_in_flight_are_held_at_their_true_cost_and_nobody_overtakes() -> None:
    arrivals = [arrival(0, 1, tokens=60), arrival(0, 2, tokens=50), arrival(0, 3, tokens=5)]
    served = play(arrivals, WindowedFifo([windowed(None, 100)]), slots=None)
    assert [run.decided_ms for run in served] == [0, 10, 10]


def test_a_run_larger_than_the_window_goes_alone() -> None:
    arrivals = [arrival(0, 1, tokens=1), arrival(0, 2, tokens=500), arrival(0, 3, tokens=1)]
    served = play(arrivals, WindowedFifo([windowed(8, 100)]), slots=None)
    assert [run.decided_ms for run in served] == [0, 10, 20]


def test_the_window_follows_the_policies() -> None:
    arrivals = [arrival(0, run) for run in range(5)]
    served = play(arrivals, WindowedFifo([windowed(1), windowed(2, at_ms=15), windowed(1, at_ms=22)]), slots=None)
    assert [run.decided_ms for run in served] == [0, 10, 15, 20, 30]


def test_a_run_joins_the_queue_when_it_may_begin() -> None:
    delayed = arrival(0, 1)._replace(not_before_ms=13)
    served = play([delayed, arrival(0, 2), arrival(12, 3)], WindowedFifo([windowed(1)]), slots=None)
    assert [(run.arrival.run_id, run.decided_ms) for run in served] == [("r0-2", 0), ("r12-3", 12), ("r0-1", 22)]
