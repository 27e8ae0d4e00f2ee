from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from streams.simulate.backlog import Contest, Interval, backlogs, find_contest
from streams.simulate.pool import Served
from streams.simulate.workload import Arrival


def run(tenant: str, at_ms: int, decided_ms: int) -> Served:
    return Served(
        Arrival(at_ms, tenant, f"{tenant}{at_ms}", "work", 10, 10), 10, decided_ms, decided_ms, decided_ms + 10
    )


def test_a_run_that_goes_at_once_is_no_backlog() -> None:
    assert backlogs([run("a", 5, 5)]) == {"a": []}


def test_waits_that_overlap_or_touch_are_one_backlog() -> None:
    served = [run("a", 0, 10), run("a", 5, 20), run("a", 20, 30), run("a", 31, 40)]
    assert backlogs(served) == {"a": [Interval(0, 30), Interval(31, 40)]}


def test_the_contest_is_the_longest_time_for_which_two_waited() -> None:
    served = [run("a", 0, 100), run("b", 20, 60), run("b", 70, 80)]
    assert find_contest(served) == Contest(Interval(20, 60), ("a", "b"))


def test_everyone_who_waited_all_the_time_takes_part() -> None:
    served = [run("a", 0, 100), run("b", 20, 60), run("c", 10, 60), run("d", 30, 60)]
    assert find_contest(served) == Contest(Interval(10, 60), ("a", "c"))
    assert find_contest(served[:2] + served[3:]) == Contest(Interval(20, 60), ("a", "b"))


def test_of_equally_long_times_the_first_counts() -> None:
    served = [run("a", 0, 100), run("b", 60, 80), run("b", 20, 40)]
    assert find_contest(served) == Contest(Interval(20, 40), ("a", "b"))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.integers(0, 12)), max_size=25))
def test_no_two_waited_together_for_longer(waits: list[tuple[str, int, int]]) -> None:
    served = [run(tenant, at_ms, at_ms + wait_ms) for tenant, at_ms, wait_ms in waits]
    common = [
        (max(one.from_ms, other.from_ms), min(one.until_ms, other.until_ms))
        for own, others in combinations(backlogs(served).values(), 2)
        for one in own
        for other in others
    ]
    longest = min(((begin - end, begin) for begin, end in common if begin < end), default=None)
    found = find_contest(served)
    assert (found and (-found.interval.length_ms, found.interval.from_ms)) == longest
    assert found is None or len(found.tenants) > 1


def test_no_contest() -> None:
    assert find_contest([]) is None
    assert find_contest([run("a", 0, 10), run("b", 10, 20)]) is None


def test_an_interval_begins_with_its_first_and_ends_before_its_last_moment() -> None:
    interval = Interval(10, 20)
    assert [interval.contains(at) for at in (9, 10, 19, 20)] == [False, True, True, False]
    assert interval.covers(Interval(10, 20))
    assert not interval.covers(Interval(9, 20))
    assert not interval.covers(Interval(10, 21))
    assert interval.length_ms == 10
