from streams.simulate.pool import Served
from streams.simulate.progress import steps, worked_off
from streams.simulate.workload import Arrival


def run(tenant: str, started_ms: int, ended_ms: int, tokens: int) -> Served:
    arrival = Arrival(0, tenant, f"{tenant}{started_ms}", "work", tokens, ended_ms - started_ms)
    return Served(arrival, tokens, started_ms, started_ms, ended_ms)


def test_a_run_counts_in_part_while_it_works_and_whole_from_its_end() -> None:
    served = [run("a", 10, 30, 100), run("a", 30, 40, 7), run("b", 0, 100, 10)]
    assert worked_off(served, (10, 15, 20, 30, 39, 40, 99)) == {
        "a": [0, 25, 50, 100, 106, 107, 107],
        "b": [1, 1, 2, 3, 3, 4, 9],
    }


def test_what_ends_after_the_last_moment_counts_in_part() -> None:
    assert worked_off([run("a", 0, 10, 10), run("a", 20, 30, 10)], (5,)) == {"a": [5]}


def test_steps_are_equal_parts_and_the_last_is_the_end() -> None:
    assert steps(100, 4) == (25, 50, 75, 100)
    assert steps(3, 10) == (1, 2, 3)
