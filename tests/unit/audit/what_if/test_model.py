"""A record that the simulated pool has made is played exactly as it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.what_if import Change, compare, make_traffic, read_record
from streams.core.inputs import STARTED, SUCCEEDED
from streams.core.policy import Policy, PriorityClass, TenantRules, Window
from streams.simulate.baselines import Fifo
from streams.simulate.costs import HeavyTail
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import Served, play
from streams.simulate.workload import Arrival, Load, make_workload
from streams.wire import partition_for
from tests.unit.audit.what_if.tape import Tape, settled

SLOTS = 4
TENANTS = ("a", "b", "d", "g")  # of two shards each has two
PLAIN = Policy(
    name="plain",
    quantum=150,
    window=Window(runs=SLOTS),
    classes=(PriorityClass(name="default", default_estimate=200), PriorityClass(name="batch", default_estimate=200)),
    tenants={"a": TenantRules(weight=3), "b": TenantRules(weight=1)},
)
POLICIES = {
    "plain": PLAIN,
    "capped": replace(PLAIN, tenants={"a": TenantRules(max_runs_in_flight=2), "b": TenantRules(weight=2)}),
    "tokens": replace(PLAIN, window=Window(runs=SLOTS, tokens=700)),
}


def workload(seed: int) -> tuple[Arrival, ...]:
    """Four tenants, of whom one uses both classes; some say what their runs will cost, some want them later."""
    costs = HeavyTail(200, reach=3.0, sigma=0.7)
    loads = [Load(tenant=name, runs=40, costs=costs, from_ms=0, until_ms=600) for name in TENANTS]
    return tuple(
        arrival._replace(
            class_="batch" if arrival.tenant == "g" and number % 3 == 0 else None,
            estimate=150 if number % 5 == 0 else None,
            max_tokens=300 if number % 7 == 0 else None,
            not_before_ms=arrival.at_ms + 40 if number % 11 == 0 else None,
        )
        for number, arrival in enumerate(make_workload(loads, seed=seed, tokens_per_s=4_000))
    )


def recorded(served: Sequence[Served], policy: Policy, shards: int = 1) -> MemoryRecording:
    """The record of a deployment that served so, without any delay of its own."""
    recording = MemoryRecording(shards=shards)
    for shard in range(shards):
        own = [run for run in served if partition_for(run.arrival.tenant, shards) == shard]
        write(Tape(policy, recording=recording, shard=shard), own)
    return recording


def write(tape: Tape, served: Sequence[Served]) -> None:
    """Write one shard's part of it."""
    moments = sorted({at for run in served for at in (run.arrival.at_ms, run.decided_ms, run.ended_ms)})
    for now in moments:
        ended = [run for run in served if run.ended_ms == now]
        for arrival in (run.arrival for run in ordered(served) if run.arrival.at_ms == now):
            tape.request(
                now,
                arrival.run_id,
                tenant=arrival.tenant,
                class_=arrival.class_,
                estimate=arrival.estimate,
                max_tokens=arrival.max_tokens,
                not_before_ms=None if arrival.not_before_ms is None else tape.ms(arrival.not_before_ms),
            )
        for run in ended:
            tape.report(now, run.arrival.run_id, SUCCEEDED, tenant=run.arrival.tenant, tokens=run.arrival.tokens)
        tape.step(
            now,
            settles=[
                settled(run.arrival.run_id, tokens=run.arrival.tokens, charged=run.charge, tenant=run.arrival.tenant)
                for run in ended
            ],
        )
        for run in (each for each in served if each.decided_ms == now):
            tape.step(now, hands_out=[run.arrival.run_id], tenant=run.arrival.tenant)
            tape.report(now, run.arrival.run_id, STARTED, tenant=run.arrival.tenant)


def ordered(served: Sequence[Served]) -> list[Served]:
    return sorted(served, key=lambda run: run.arrival[:3])


def assert_same(found: Sequence[Served], made: Sequence[Served]) -> None:
    begin = min(run.arrival.at_ms for run in made)

    def brief(run: Served, begin_ms: int) -> tuple[str, str, int, int]:
        return run.arrival.tenant, run.arrival.run_id, run.decided_ms - begin_ms, run.ended_ms - begin_ms

    assert sorted(brief(run, 0) for run in found) == sorted(brief(run, begin) for run in made)


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", POLICIES)
def test_the_model_of_what_was_is_what_was(name: str, shards: int) -> None:
    policy = POLICIES[name]
    made = play(workload(1), DeficitRoundRobin(policy, slots=SLOTS, shards=shards), slots=SLOTS)
    traffic = make_traffic(read_record(recorded(made, policy, shards)))
    assert {partition_for(run.arrival.tenant, shards) for run in made} == {*range(shards)}
    assert_same(traffic.served, made)
    found = compare(traffic, Change(fifo=True))
    assert found.model.waits == found.happened.waits
    assert found.model.shares == found.happened.shares
    assert not any((found.distance.p95[1], found.distance.share[1], found.distance.makespan))
    assert found.other.waits != found.happened.waits


@pytest.mark.parametrize("fifo", [False, True])
def test_what_if_is_what_would_have_been(fifo: bool) -> None:
    """One record, of one scheduler; what it says of another one is what that one does with the same workload."""
    arrivals = tuple(arrival._replace(not_before_ms=None) for arrival in workload(3))
    made = play(arrivals, DeficitRoundRobin(PLAIN, slots=SLOTS), slots=SLOTS)
    traffic = make_traffic(read_record(recorded(made, PLAIN)))
    found = compare(traffic, Change(fifo=True) if fifo else Change(policy=POLICIES["capped"]))
    scheduler = Fifo() if fifo else DeficitRoundRobin(POLICIES["capped"], slots=SLOTS)
    other = play(arrivals, scheduler, slots=SLOTS)
    assert {tenant: waits.longest for tenant, waits in found.other.waits.items()} == {
        tenant: max(run.wait_ms for run in other if run.arrival.tenant == tenant) for tenant in found.other.waits
    }
    begin = arrivals[0].at_ms
    assert found.other.makespan_ms == max(run.ended_ms for run in other) - begin
