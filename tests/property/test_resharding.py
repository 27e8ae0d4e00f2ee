"""Another number of shards, after any history: nothing is lost, nobody changes places, every run is still served."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import example, given, target
from hypothesis import strategies as st

from streams.core.inputs import Takeover
from streams.core.policy import Estimates, Leases, Limits, Memory, Policy, PriorityClass, TenantRules, Window
from streams.core.records import FlowRecord, PolicyRecord, Record, RingRecord
from streams.core.resharding import brought_up, last_step_ms
from streams.core.shard import Shard
from streams.core.stock import Stock
from tests.assertions import assert_drained, plain, rows_of
from tests.property.deployments import Deployment, resharded
from tests.strategies import door_policies

seeds = st.integers(0, 1 << 32)
numbers = st.integers(1, 5)


def stock_of(deployment: Deployment) -> Stock:
    """What the shards hold, at the time of the latest and under the policy that was stated last."""
    stock, policy = Stock(), PolicyRecord(0, deployment.policy)
    records = [[plain(each) for each in shard.dump()] for shard in deployment.shards]
    for shard, own in enumerate(records):
        stock.add(brought_up(own, shard, len(records), policy, last_step_ms(records)))
    return stock


def loaded(records: list[list[Record]], policy: Policy) -> Deployment:
    shards = [Shard.load(number, len(records), own) for number, own in enumerate(records)]
    return Deployment(shards, policy)


@given(policy=door_policies(), later=st.none() | door_policies(), seed=seeds, old=numbers, new=numbers)
def test_nothing_is_lost_and_every_new_shard_is_sound(
    policy: Policy, later: Policy | None, seed: int, old: int, new: int
) -> None:
    """Also if a policy was stated of which only some shards have heard. `moved_to` checks the invariants."""
    draw = random.Random(seed)
    before = Deployment.make(old, policy)
    before.live(draw, 25)
    if later is not None:
        before.set_policy(later, only=[shard for shard in range(old) if draw.random() < 0.5])
    after = loaded(resharded(before, new), before.policy)
    assert [line for line in stock_of(before).compare(stock_of(after)) if not line.equal] == []
    moved = before.moved_to(new)
    moved.live(draw, 10, name="s")
    moved.moved_to(old).live(draw, 5, name="t")


@given(policy=door_policies(), seed=seeds, old=numbers, new=numbers)
def test_the_sums_over_forgotten_flows_stay(policy: Policy, seed: int, old: int, new: int) -> None:
    before = Deployment.make(old, policy)
    before.live(random.Random(seed), 25)
    rings = [[each for each in shard.dump() if isinstance(each, RingRecord)] for shard in before.shards]
    moved = [each for own in resharded(before, new) for each in own if isinstance(each, RingRecord)]
    for name in ("past_charged", "past_dispatched", "past_ended"):
        assert sum(getattr(each, name) for own in rings for each in own) == sum(getattr(each, name) for each in moved)


LOW_HAS_A_MINIMUM = Policy(
    window=Window(runs=None, tokens=1),
    quantum=1,
    classes=(PriorityClass(name="mid"), PriorityClass(name="high"), PriorityClass(name="low", min_share=33)),
    limits=Limits(max_queued_runs=None, max_queued_bytes=None),
    estimates=Estimates(prior_runs=0, decay_runs=1),
    leases=Leases(lease_ms=10, max_lease_ms=200, max_attempts=1, backoff_ms=5, max_backoff_ms=80),
    memory=Memory(ended_ms=0, ended_runs=0, flows=1_000, histories=2, tenant_histories=1),
)


# A bill that comes late, for a class that has nothing queued and is behind its minimum, is set off against that.
@example(policy=LOW_HAS_A_MINIMUM, seed=0, shards=4)
@given(policy=door_policies(), seed=seeds, shards=numbers)
def test_as_many_shards_as_before_decide_as_they_would_have(policy: Policy, seed: int, shards: int) -> None:
    """Same inputs, same dispatches, whatever was in the middle of a visit, once all shards are equally far."""
    before = Deployment.make(shards, policy)
    before.live(random.Random(seed), 25)
    for number in range(shards):
        before._step(number, [])
    twin = before.moved_to(shards)
    for number in range(shards):
        before._step(number, [Takeover(1)])
    for each in (before, twin):
        each.dispatches = list(each.in_flight)
        each.live(random.Random(seed + 1), 15, name="s")
    decided = [
        [(each.tenant, each.run_id, each.attempt, each.estimate, each.deficit_after) for each in one.dispatches]
        for one in (before, twin)
    ]
    target(len(decided[0]))
    assert decided[0] == decided[1]


def served_for_good(policy: Policy) -> Policy:
    """The same order of service, and nothing that refuses a run or gives one up."""
    rules = {
        name: replace(own, paused=False, max_queued_runs=None, max_queued_tokens=None)
        for name, own in policy.tenants.items()
    }
    return replace(
        policy,
        tenants=rules,
        default=TenantRules(),
        closed=False,
        limits=Limits(),
        memory=Memory(),
        leases=replace(policy.leases, lease_ms=10**9, min_lease_ms=1, max_lease_ms=10**9, max_attempts=1_000),
    )


@given(policy=door_policies(), seed=seeds, old=numbers, new=numbers)
def test_every_run_is_served_once_and_all_accounts_are_closed(policy: Policy, seed: int, old: int, new: int) -> None:
    before = Deployment.make(old, served_for_good(policy))
    before.live(random.Random(seed), 25)
    after = before.moved_to(new)
    after.drain()
    attempts = [(each.tenant, each.run_id, each.attempt) for each in before.dispatches + after.dispatches]
    assert len(attempts) == len(set(attempts)), "an attempt was dispatched twice"
    spent = 0
    for shard in after.shards:
        assert_drained(shard)
        spent += sum(row.actual for row in rows_of(shard).values() if isinstance(row, FlowRecord))
    assert spent == before.spent + after.spent
