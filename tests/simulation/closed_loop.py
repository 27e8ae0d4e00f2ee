"""Threads that file a run, wait for its end, think, and file the next: the load adapts to the service.

One shard, a virtual clock of a million ticks a second; what bounds the service is the window of the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from streams.core.effects import Dispatch
from streams.core.inputs import SUCCEEDED, Input, SetPolicy
from streams.core.invariants import check
from streams.core.policy import Policy
from streams.core.shard import Shard
from tests.assertions import assert_drained
from tests.builders import make_report, make_submit

SECOND = 1_000_000  # ticks; a shard calls them milliseconds and does not mind


@dataclass(frozen=True)
class Thread:
    """One caller of a tenant. Times in ticks."""

    tenant: str
    calls: int
    cost: int  # tokens a run really costs
    runs_for: int = SECOND
    thinks_for: int = 0
    starts_at: int = 0
    estimate: int | None = None  # what its producer says; None: the truth
    in_step: bool = False  # it calls again when all such threads of its tenant have ended


@dataclass(frozen=True)
class Service:
    """One run from its dispatch to its end, in ticks."""

    tenant: str
    cost: int
    began: int
    ended: int


@dataclass(frozen=True)
class Outcome:
    """All that was served."""

    services: tuple[Service, ...]

    def average(self, tenant: str, since: int, until: int) -> Fraction:
        """Return the mean cost that was in service for the tenant, over a stretch of time."""
        total = sum(
            each.cost * max(0, min(each.ended, until) - max(each.began, since))
            for each in self.services
            if each.tenant == tenant
        )
        return Fraction(total, until - since)

    def served(self, tenant: str) -> int:
        """Return how many runs of the tenant were served."""
        return sum(each.tenant == tenant for each in self.services)

    def share(self, tenant: str, until: int) -> Fraction:
        """Return the tenant's part of all the tokens whose service began before `until`."""
        costs = [(each.tenant, each.cost) for each in self.services if each.began < until]
        return Fraction(sum(cost for name, cost in costs if name == tenant), sum(cost for _, cost in costs))


def run_closed_loop(policy: Policy, threads: Sequence[Thread], *, until: int | None = None) -> Outcome:
    """Let all threads make all their calls, or those that begin before `until`; then everything ends."""
    shard = Shard(0, 1)
    now = SECOND  # the shard's clock begins after 0
    shard.step([SetPolicy(0, policy)], now)
    events = [(now + thread.starts_at, index, "call") for index, thread in enumerate(threads)]
    events.sort()
    owners: dict[str, int] = {}
    made = [0] * len(threads)
    busy: set[int] = set()
    flying: dict[str, Dispatch] = {}
    services: list[Service] = []
    while events:
        now = events[0][0]
        inputs: list[Input] = []
        while events and events[0][0] == now:
            _, index, what = heappop(events)
            thread = threads[index]
            if what != "call":
                inputs.append(make_report(flying.pop(what), SUCCEEDED, thread.cost))
                busy.remove(index)
                for caller in _next_callers(threads, index, busy):
                    if made[caller] < thread.calls and (until is None or now - SECOND < until):
                        heappush(events, (now + thread.thinks_for, caller, "call"))
                continue
            busy.add(index)
            made[index] += 1
            run_id = f"{index}/{made[index]}"
            owners[run_id] = index
            cost = thread.cost if thread.estimate is None else thread.estimate
            inputs.append(make_submit(thread.tenant, run_id, position=len(owners), cost=cost))
        for dispatch in shard.step(inputs, now).dispatches:
            index = owners[dispatch.run_id]
            thread = threads[index]
            flying[dispatch.run_id] = dispatch
            heappush(events, (now + thread.runs_for, index, dispatch.run_id))
            began = now - SECOND
            services.append(Service(thread.tenant, thread.cost, began, began + thread.runs_for))
    check(shard)
    assert_drained(shard)
    return Outcome(tuple(services))


def _next_callers(threads: Sequence[Thread], ended: int, busy: set[int]) -> list[int]:
    """Return who calls next, now that a call of thread `ended` has ended."""
    thread = threads[ended]
    if not thread.in_step:
        return [ended]
    group = [n for n, each in enumerate(threads) if each.in_step and each.tenant == thread.tenant]
    return [] if busy.intersection(group) else group
