"""Who gives way when the backlog of the shard is full, if the policy says `drop_longest`: the tenant with the most
tokens waiting per weight, and of it the run that came last.

So a tenant that floods the shard pushes out its own runs, and a small one still gets in (longest queue drop:
B. Suter et al., "Design considerations for supporting TCP with per-flow queueing", INFOCOM 1998).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from streams.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.core.flows import Tenant
    from streams.core.runs import Run

_SCALE_BITS = 16  # backlogs are compared in 1/65536 of a token per weight
_SLACK = 1_024


def _load(tenant: Tenant) -> int:
    return (tenant.queued_tokens << _SCALE_BITS) // tenant.rules.weight


class Backlogs:
    """Tenants by what they have waiting per weight. Made when it is first needed, dropped when it holds too much.

    A heap of (-load, name, tenant); an entry that is out of date is put right when it comes up. Loads that grow are
    noted, so the largest is never below the top. It depends on the tenants alone: the same after a load.
    """

    __slots__ = ("_heap", "_limit")

    def __init__(self, tenants: Iterable[Tenant]) -> None:
        """Begin with those that have something waiting."""
        self._heap = [(-_load(tenant), tenant.name, tenant) for tenant in tenants if tenant.queued_runs]
        heapify(self._heap)
        self._limit = 4 * len(self._heap) + _SLACK

    def note(self, tenant: Tenant) -> bool:
        """Take in that a tenant has more waiting; False: make another, this one holds too much that is out of date."""
        heappush(self._heap, (-_load(tenant), tenant.name, tenant))
        return len(self._heap) <= self._limit

    def longest(self) -> Tenant:
        """Return the tenant with the most waiting per weight; of equals the first by name. One must have something."""
        heap = self._heap
        while True:
            noted, name, tenant = heap[0]
            load = -_load(tenant)
            if noted == load and tenant.queued_runs:
                return tenant
            heappop(heap)
            if tenant.queued_runs:
                heappush(heap, (load, name, tenant))


def last_waiting(tenant: Tenant) -> Run:
    """Return the run of a tenant that came last and has not been dispatched, or is back. One must be there."""
    return next(run for run in reversed(tenant.runs.values()) if run.state is not RunState.IN_FLIGHT)
