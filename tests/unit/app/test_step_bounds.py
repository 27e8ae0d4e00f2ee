"""A step fits what the topics take, whatever is in it: the longest names, and every bound of a step met at once."""

from __future__ import annotations

import pytest

from streams.app.inbox import Inbox
from streams.app.policy_reader import PolicyFeed
from streams.core import counts
from streams.core.dispatching import MAX_DISPATCHES
from streams.core.effects import Effects
from streams.core.expiry import MAX_ENDED
from streams.core.inputs import STARTED, Completion, SetPolicy, Submit
from streams.core.overload import MAX_DROPPED
from streams.core.policy import Estimates, Leases, Limits, Policy, PriorityClass, TenantRules, Window
from streams.core.policy_check import MAX_TENANTS
from streams.core.records import EndedRecord, PolicyRecord
from streams.core.shard import Shard
from streams.intake import Reader
from streams.rows import encode
from streams.wire import (
    MAX_POLICY_BYTES,
    STEP_BYTES,
    AppliedPolicy,
    Proof,
    encode_completion,
    encode_journal,
    policy_bytes,
)
from tests.unit.app.fakes import NAMES, FakeRecord, completions

MOST_INPUTS = 4_000  # the largest `max_step_inputs`
LEASE_MS = 1_000
WORST = "\x01"  # of no other character a name's JSON is longer


def name(number: int, length: int) -> str:
    return f"{number:05}".rjust(length, WORST)[-length:]


def policy(length: int, *, runs: int, queued: int) -> Policy:
    return Policy(
        quantum=10**9,
        window=Window(runs=runs),
        classes=(PriorityClass(name=WORST * min(length, 64)),),
        limits=Limits(max_queued_runs=queued, overload="drop_longest"),
        estimates=Estimates(source="max"),
        leases=Leases(lease_ms=LEASE_MS, max_attempts=1),
    )


def fullest_step(length: int) -> Effects:
    """A step that meets every bound: reports that give up runs, leases that run out, dispatches; and, as far as the
    reports leave room for it, runs that give way.
    """
    shard, tenant, at = Shard(0, 1), name(0, length), 0
    reports, lost, waiting = MOST_INPUTS, MAX_ENDED + 1, MAX_DROPPED + MAX_DISPATCHES + 2
    if length > 60:  # then the bounds in bytes are met long before these numbers
        reports, lost, waiting = 2_000, 600, 2_000
    runs = [name(number, length) for number in range(reports + lost + waiting)]
    in_flight = runs[: reports + lost]
    shard.step([SetPolicy(0, policy(length, runs=len(in_flight), queued=len(runs)))], at)
    shard.step([Submit(position, tenant, run, tenant) for position, run in enumerate(runs)], at)
    while shard.next_timer_ms() == at:
        shard.step([], at)
    assert shard.snapshot().shard.queued_runs == waiting
    # A lease that runs out unheard costs no attempt; theirs are to use up the only one.
    shard.step([Completion(0, tenant, run, 1, STARTED) for run in in_flight], at)

    inbox = Inbox(10**6, 1 << 40, lambda: None)
    inbox.reset(1)
    for offset, run in enumerate(in_flight[:reports]):
        value = encode_completion(tenant=tenant, run_id=run, attempt=1, status="failed", tokens=10**12, retryable=True)
        inbox.put(completions(FakeRecord(offset, value)))
    intake = Reader(NAMES, 0, 1).read(inbox.take(MOST_INPUTS, 8 << 20), {})
    newcomer = Submit(10**6, tenant, "newcomer", tenant)
    lower = SetPolicy(1, policy(length, runs=len(in_flight), queued=1))
    return shard.step([lower, *intake.completions, newcomer], at + LEASE_MS)


@pytest.mark.parametrize("length", [5, 20, 60, 120, 255])
def test_the_journal_of_the_fullest_step_fits(length: int) -> None:
    effects = fullest_step(length)
    assert min(effects.counts[each] for each in (counts.LOST, counts.DISPATCHED)) > 100
    assert effects.counts[counts.DEAD_LETTERED] > 400 + effects.counts[counts.LOST]
    assert length > 5 or effects.counts[counts.DROPPED] == MAX_DROPPED
    value = encode_journal(effects, shard=0, epoch=10**18, policy_version=10**18, inputs=(), takeover=True)
    assert len(value) < STEP_BYTES - 500_000
    if length == 255:
        assert len(value) > STEP_BYTES // 2, "this was meant to be the worst case"


def largest_policies() -> list[AppliedPolicy]:
    """As many and as large ones as a shard is given at once."""
    feed = PolicyFeed()
    for offset, tenants in enumerate([20] * 60 + [17_500]):
        rules = {f"{'x' * 150}{number:05}": TenantRules(weight=2) for number in range(tenants)}
        feed.add(AppliedPolicy(offset, "x" * 255, 10**15, Policy(tenants=rules)))
    return list(feed.after(-1))


def test_the_journal_of_a_step_with_the_largest_policies_fits() -> None:
    """Such a step takes nothing else in (`shard_task`). It would fit even if it did."""
    policies, effects = largest_policies(), fullest_step(255)
    proof = Proof(core=10**9, state="f" * 32, previous="f" * 64)
    value = encode_journal(
        effects, shard=0, epoch=10**18, policy_version=10**18, inputs=(), policies=policies, proof=proof
    )
    assert STEP_BYTES - 500_000 < len(value) < STEP_BYTES


def test_the_row_of_the_largest_policy_fits() -> None:
    shortest = {f"{number:x}": TenantRules(plan="p") for number in range(MAX_TENANTS)}
    longest = {f"{'x' * 130}{number:05}": TenantRules(plan="p", max_queued_tokens=1) for number in range(17_000)}
    for tenants in (shortest, longest):
        assert policy_bytes(Policy(tenants=tenants)) <= MAX_POLICY_BYTES
        assert len(encode(PolicyRecord(1, Policy(tenants=tenants)))) < STEP_BYTES


@pytest.mark.parametrize("length", [60, 255])
def test_the_page_of_the_runs_that_ended_in_the_fullest_step_fits(length: int) -> None:
    (page,) = [row for row in fullest_step(length).changed.values() if isinstance(row, EndedRecord)]
    assert page.lost
    # As many accounts of lost attempts as a page can have, which takes many attempts of each run.
    page.lost = [max(page.lost, key=lambda each: len(each[2]))] * 1_000
    assert len(encode(page)) < STEP_BYTES
