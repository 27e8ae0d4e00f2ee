from collections.abc import Sequence

import pytest

from streams.core.policy import Policy, TenantRules, Window
from streams.errors import ConfigError
from streams.simulate.baselines import Fifo, NoRestraint, RoundRobin
from streams.simulate.costs import HeavyTail
from streams.simulate.deficit_round_robin import DeficitRoundRobin, Stated
from streams.simulate.pool import play, play_out
from streams.simulate.scheduler import Scheduler, Start
from streams.simulate.workload import Arrival, Load, make_workload


def arrival(at_ms: int, tenant: str = "a", *, tokens: int = 10, duration_ms: int = 10, run: int = 0) -> Arrival:
    return Arrival(at_ms, tenant, f"{tenant}{at_ms}-{run}", "work", tokens, duration_ms)


def everyone(slots: int) -> list[Scheduler]:
    return [Fifo(), RoundRobin(), NoRestraint(), DeficitRoundRobin(Policy(quantum=10), slots=slots)]


def test_one_slot_works_one_run_after_the_other() -> None:
    served = play([arrival(0), arrival(1), arrival(2)], Fifo(), slots=1)
    assert [(run.started_ms, run.ended_ms, run.wait_ms) for run in served] == [(0, 10, 0), (10, 20, 9), (20, 30, 18)]


def test_an_end_makes_room_for_an_arrival_of_the_same_moment() -> None:
    served = play([arrival(0), arrival(10)], Fifo(), slots=1)
    assert [run.wait_ms for run in served] == [0, 0]


def test_the_handover_holds_the_slot_and_delays_the_work() -> None:
    served = play([arrival(0), arrival(1)], Fifo(), slots=1, handover_ms=5)
    assert [(run.decided_ms, run.started_ms, run.ended_ms) for run in served] == [(0, 5, 15), (15, 20, 30)]


def test_a_pause_without_work_is_skipped() -> None:
    served = play([arrival(0), arrival(1_000_000)], Fifo(), slots=3)
    assert [run.wait_ms for run in served] == [0, 0]


def test_nothing_to_do() -> None:
    assert play([], Fifo(), slots=1) == ()


@pytest.mark.parametrize("slots", [1, 3, 16])
def test_every_scheduler_serves_every_run_once_and_keeps_all_slots_busy(slots: int) -> None:
    loads = [Load(tenant=name, runs=60, costs=HeavyTail(200), from_ms=0, until_ms=400) for name in ("a", "b", "c")]
    arrivals = make_workload(loads, seed=5, tokens_per_s=1_000)
    work = sum(each.duration_ms for each in arrivals)
    for scheduler in everyone(slots):
        served = play(arrivals, scheduler, slots=slots)
        assert sorted(run.arrival for run in served) == list(arrivals)
        assert all(run.wait_ms >= 0 for run in served)
        _assert_within(served_intervals=[(run.started_ms, run.ended_ms) for run in served], slots=slots)
        # Work conserving: no schedule ends later than the last arrival, all the work, and the longest run after it.
        longest = max(each.duration_ms for each in arrivals)
        assert max(run.ended_ms for run in served) <= 400 + work // slots + longest


def _assert_within(served_intervals: list[tuple[int, int]], slots: int) -> None:
    changes = sorted([(start, 1) for start, _ in served_intervals] + [(end, -1) for _, end in served_intervals])
    busy = 0
    for _, change in changes:
        busy += change
        assert busy <= slots


def test_no_slots_are_refused() -> None:
    with pytest.raises(ConfigError, match="slots"):
        play([], Fifo(), slots=0)


class Eager(Fifo):
    """Starts whatever comes, room or not."""

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del free
        return super().advance(now_ms, arrived, ended, len(arrived))


class Lazy(Fifo):
    """Never starts anything."""

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del now_ms, arrived, ended, free
        return []


@pytest.mark.parametrize(("broken", "says"), [(Eager(), "started 3 runs with 2"), (Lazy(), "served 0 of 3")])
def test_a_scheduler_that_breaks_the_rules_is_told_so(broken: Scheduler, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        play([arrival(0, run=n) for n in range(3)], broken, slots=2)


def test_ours_is_refused_a_workload_that_its_policy_refuses() -> None:
    paused = Policy(default=TenantRules(paused=True))
    with pytest.raises(RuntimeError, match="paused"):
        play([arrival(0)], DeficitRoundRobin(paused, slots=1), slots=1)


def test_ours_settles_every_token() -> None:
    loads = [Load(tenant=name, runs=40, costs=HeavyTail(500), from_ms=0, until_ms=50) for name in ("a", "b")]
    arrivals = make_workload(loads, seed=2, tokens_per_s=5_000)
    ours = DeficitRoundRobin(Policy(quantum=100), slots=4)
    served = play(arrivals, ours, slots=4)
    assert any(run.charge != run.arrival.tokens for run in served)
    spent = {name: sum(each.tokens for each in arrivals if each.tenant == name) for name in ("a", "b")}
    assert ours.accounts() == {name: (tokens, tokens) for name, tokens in spent.items()}


def test_a_policy_that_follows_holds_from_its_moment() -> None:
    one, two = Policy(quantum=10, window=Window(runs=1)), Policy(quantum=10, window=Window(runs=2))
    ours = DeficitRoundRobin(one, slots=1, changes=[Stated(25, two)])
    served = play([arrival(0, run=n) for n in range(4)], ours, slots=2)
    assert [run.decided_ms for run in served] == [0, 10, 20, 25]


def test_a_name_that_is_still_taken_is_refused_and_leaves_its_run_alone() -> None:
    first, again = arrival(0), arrival(0)._replace(at_ms=5, tokens=77)
    played = play_out([first, again], DeficitRoundRobin(Policy(quantum=10), slots=1), slots=1)
    assert [run.arrival for run in played.served] == [first]
    assert [(refusal.arrival, refusal.reason) for refusal in played.refused] == [(again, "duplicate")]


def test_who_is_paused_for_good_is_told() -> None:
    paused = Policy(quantum=10, window=Window(runs=1), default=TenantRules(paused=True))
    ours = DeficitRoundRobin(Policy(quantum=10, window=Window(runs=1)), slots=1, changes=[Stated(5, paused)])
    first, second = arrival(0, run=1), arrival(0, run=2)
    played = play_out([first, second], ours, slots=1)
    assert ([run.arrival for run in played.served], played.waiting) == ([first], (second,))
