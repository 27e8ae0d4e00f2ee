"""Slots that vanish with the runs in them, and how each scheduler finds out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.core.policy import Leases, Policy, Window
from streams.errors import ConfigError
from streams.simulate.baselines import Fifo, NoRestraint, RoundRobin
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import Outage, play, play_out
from streams.simulate.scheduler import Scheduler
from streams.simulate.workload import Arrival

LEASE_MS = 500
POLICY = Policy(quantum=100, leases=Leases(lease_ms=LEASE_MS, min_lease_ms=1, backoff_ms=0))


def ours(slots: int) -> Scheduler:
    return DeficitRoundRobin(POLICY, slots=slots)


EVERYONE: list[Callable[[int], Scheduler]] = [
    ours,
    lambda _: Fifo(lease_ms=LEASE_MS),
    lambda _: RoundRobin(lease_ms=LEASE_MS),
    lambda _: NoRestraint(lease_ms=LEASE_MS),
]
SCHEDULERS = pytest.mark.parametrize("make", EVERYONE, ids=["ours", "fifo", "round-robin", "no-restraint"])


def arrival(run: int, at_ms: int = 0, *, tenant: str = "a", lasts_ms: int = 100) -> Arrival:
    return Arrival(at_ms, tenant, f"{tenant}{run}", "work", lasts_ms, lasts_ms)


@SCHEDULERS
def test_a_lost_run_is_tried_again_when_its_lease_has_run_out(make: Callable[[int], Scheduler]) -> None:
    played = play_out([arrival(0)], make(1), slots=1, outages=[Outage(30, 40, 1)])
    assert [(run.decided_ms, run.ended_ms) for run in played.served] == [(530, 630)]
    assert [(lost.started_ms, lost.lost_ms, lost.tokens) for lost in played.lost] == [(0, 30, 30)]
    assert [(run.decided_ms, run.arrival.tokens, run.arrival.at_ms) for run in played.attempts] == [
        (0, 30, 0),
        (530, 100, 530),
    ]


@SCHEDULERS
def test_until_then_it_keeps_its_place_in_the_window(make: Callable[[int], Scheduler]) -> None:
    """Both slots are back at once, but one place is taken by who nobody knows to be lost."""
    arrivals = [arrival(0, lasts_ms=1_000), *(arrival(n, 100) for n in range(1, 8))]
    played = play_out(arrivals, make(2), slots=2, outages=[Outage(30, 31, 1)])
    begun = sorted(run.decided_ms for run in played.served)
    assert begun == [100, 200, 300, 400, 500, 530, 600, 700]  # at 530 the lost one takes the second slot


@SCHEDULERS
def test_it_goes_back_to_its_place_before_the_others(make: Callable[[int], Scheduler]) -> None:
    arrivals = [arrival(n, n) for n in range(20)]
    played = play_out(arrivals, make(2), slots=2, outages=[Outage(130, 135, 2)])
    order = [int(run.arrival.run_id[1:]) for run in sorted(played.served, key=lambda run: run.decided_ms)]
    assert {int(each.arrival.run_id[1:]) for each in played.lost} == {2, 3}
    assert order == list(range(20))


@SCHEDULERS
def test_who_is_handed_out_while_slots_are_away_waits_for_one(make: Callable[[int], Scheduler]) -> None:
    arrivals = [arrival(n) for n in range(4)]
    played = play_out(arrivals, make(2), slots=2, outages=[Outage(10, 2_000, 1)])
    # The lost one's place is free again at 510: it is handed out, and another with it.
    waits = [(run.decided_ms, run.started_ms) for run in played.served]
    assert all(decided <= started for decided, started in waits)
    assert sorted(started for _, started in waits) == [0, 100, 200, 510]


def test_who_was_handed_out_first_is_lost_first() -> None:
    arrivals = [arrival(0, 0, lasts_ms=1_000), arrival(1, 5, lasts_ms=1_000), arrival(2, 9, lasts_ms=1_000)]
    played = play_out(arrivals, Fifo(), slots=3, outages=[Outage(50, 60, 2)])
    assert [each.arrival.run_id for each in played.lost] == ["a0", "a1"]


def test_idle_slots_go_last() -> None:
    played = play_out([arrival(0), arrival(1, 40)], Fifo(), slots=4, outages=[Outage(20, 1_000, 3)])
    assert [each.arrival.run_id for each in played.lost] == ["a0"]
    assert next(run for run in played.served if run.arrival.run_id == "a1").started_ms == 40


def test_ours_pays_for_what_was_worked_off_and_no_more() -> None:
    scheduler = DeficitRoundRobin(POLICY, slots=1)
    play([arrival(0)], scheduler, slots=1, outages=[Outage(30, 40, 1)])
    assert scheduler.accounts() == {"a": (130, 130)}


def test_ours_gives_up_after_so_many_attempts() -> None:
    twice = replace(POLICY, leases=replace(POLICY.leases, max_attempts=2))
    outages = [Outage(30, 40, 1), Outage(600, 610, 1)]
    played = play_out([arrival(0)], DeficitRoundRobin(twice, slots=1), slots=1, outages=outages)
    assert played.served == ()
    assert [(each.at_ms, each.reason) for each in played.refused] == [(1_100, "dead_lettered")]


def test_who_is_alive_keeps_its_lease_however_long_it_works() -> None:
    long = [arrival(n, lasts_ms=20 * LEASE_MS) for n in range(3)]
    played = play_out(long, DeficitRoundRobin(POLICY, slots=3), slots=3, outages=[Outage(700, 800, 1)])
    assert len(played.lost) == 1
    assert sorted(run.ended_ms for run in played.served) == [10_000, 10_000, 700 + LEASE_MS + 10_000]


def test_each_shard_has_its_part_of_the_window_and_its_tenants() -> None:
    names = [f"t{number}" for number in range(12)]
    arrivals = sorted(arrival(n, tenant=name) for name in names for n in range(5))
    scheduler = DeficitRoundRobin(replace(POLICY, window=Window(runs=8)), slots=8, shards=4)
    served = play(arrivals, scheduler, slots=8)
    assert len(served) == 60
    assert [shard.snapshot().shard.shard for shard in scheduler.shards] == [0, 1, 2, 3]
    owners = [{view.tenant for view in shard.snapshot().flows} for shard in scheduler.shards]
    assert sorted(name for own in owners for name in own) == sorted(names)
    busiest = max(owners, key=len)
    assert len(busiest) > 3
    first = [run for run in served if run.decided_ms == 0 and run.arrival.tenant in busiest]
    assert len(first) == 2


@pytest.mark.parametrize("shards", [0, 3])
def test_a_shard_needs_a_slot(shards: int) -> None:
    with pytest.raises(ConfigError, match="shards"):
        DeficitRoundRobin(POLICY, slots=2, shards=shards)


@pytest.mark.parametrize(
    "outage", [Outage(10, 10, 1), Outage(-1, 5, 1), Outage(0, 5, 0), Outage(0, 5, 3)], ids=lambda each: str(tuple(each))
)
def test_an_outage_that_cannot_be(outage: Outage) -> None:
    with pytest.raises(ConfigError, match="outages"):
        play([], Fifo(), slots=2, outages=[outage])


def test_a_scheduler_that_knows_nothing_of_losses_says_so() -> None:
    class Forgetful(Fifo):
        lose = Scheduler.lose

    with pytest.raises(NotImplementedError, match="Forgetful"):
        play([arrival(0)], Forgetful(), slots=1, outages=[Outage(30, 40, 1)])
