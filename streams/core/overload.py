"""Who gives way when the backlog of the shard is full, if the policy says `drop_longest`: the tenant with the most
waiting per weight (tokens if there are too many runs, bytes if they are too large), and of it the run that came last.

A run that was never dispatched is preferred: nothing has been spent on it, and it may be sent again at once.

So a tenant that floods the shard pushes out its own runs, and a small one still gets in (longest queue drop:
B. Suter et al., "Design considerations for supporting TCP with per-flow queueing", INFOCOM 1998).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from streams.core.counts import DROPPED
from streams.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streams.core.flows import Tenant
    from streams.core.runs import Run
    from streams.core.state import State

_SCALE_BITS: Final = 16  # backlogs are compared in 1/65536 of a token or byte per weight
_SLACK: Final = 1_024
# Runs that give way in one step, after which newcomers are refused: its transaction stays small, also when a new policy
# has lowered the limit far below what waits.
MAX_DROPPED: Final = 2_000
MAX_DROPPED_BYTES: Final = 8 << 20


def queued_tokens(tenant: Tenant) -> int:
    """Return the tokens a tenant has waiting, per weight."""
    return (tenant.queued_tokens << _SCALE_BITS) // tenant.rules.weight


def held_bytes(tenant: Tenant) -> int:
    """Return the bytes of a tenant's runs, per weight. Those in flight are held as well, though they can't give way."""
    return (tenant.held_bytes << _SCALE_BITS) // tenant.rules.weight


class Backlogs:
    """Tenants by what they have waiting per weight. Made when it is first needed.

    A heap of (-load, name); an entry that is out of date is put right when it comes up. Loads that grow are noted, so
    the largest is never below the top. It depends on the tenants alone: the same after a load.
    """

    __slots__ = ("_heap", "_limit", "_tenants", "load")

    def __init__(self, tenants: Mapping[str, Tenant], load: Callable[[Tenant], int]) -> None:
        """Begin with those of the `tenants` that have something waiting; `load` says how much it is, per weight."""
        self.load = load
        self._tenants = tenants  # by name: one that is forgotten and named again is another object
        self._keep(tenants)

    def note(self, tenant: Tenant) -> None:
        """Take in that a tenant has more waiting. O(log n), and now and then O(n) for n that have something waiting."""
        heappush(self._heap, (-self.load(tenant), tenant.name))
        if len(self._heap) > self._limit:
            self._keep(dict.fromkeys(name for _, name in self._heap))

    def noted(self) -> dict[str, int]:
        """Return the largest load that is noted of each tenant."""
        return {name: -load for load, name in sorted(self._heap, reverse=True)}

    def longest(self) -> Tenant:
        """Return the tenant with the most waiting per weight; of equals the first by name. One must have something."""
        heap, tenants = self._heap, self._tenants
        while True:
            noted, name = heap[0]
            tenant = tenants.get(name)
            if tenant is None or not tenant.queued_runs:
                heappop(heap)
                continue
            load = -self.load(tenant)
            if noted == load:
                return tenant
            heapreplace(heap, (load, name))

    def _keep(self, names: Iterable[str]) -> None:
        """Hold one entry of each of `names` that has something waiting; nobody else has."""
        known = (tenant for name in names if (tenant := self._tenants.get(name)) is not None)
        self._heap = [(-self.load(tenant), tenant.name) for tenant in known if tenant.queued_runs]
        heapify(self._heap)
        self._limit = 4 * len(self._heap) + _SLACK


def longest_backlog(state: State) -> Tenant:
    """Return the tenant with the most tokens waiting per weight. One must have something waiting."""
    if state.backlogs is None:
        state.backlogs = Backlogs(state.tenants, queued_tokens)
    return state.backlogs.longest()


def heaviest_backlog(state: State) -> Tenant:
    """Return the tenant with the most bytes per weight of those that have something waiting. There must be one."""
    if state.heaviest is None:
        state.heaviest = Backlogs(state.tenants, held_bytes)
    return state.heaviest.longest()


def may_drop(state: State) -> bool:
    """Tell whether one more run may give way in this step."""
    return state.out.counts.get(DROPPED, 0) < MAX_DROPPED and state.given_up_bytes < MAX_DROPPED_BYTES


def last_waiting(tenant: Tenant) -> Run:
    """Return the waiting run of a tenant that came last, if possible one that was never dispatched. One must wait.

    What came last is nearly always fresh. Else the ends of the queues are looked at: only a fresh run that asked to
    start at a later time and has others behind it that have been dispatched, or are queued, is passed over.
    """
    run = next(reversed(tenant.runs.values()))
    if not run.attempt:
        return run
    fresh = [last for flow in tenant.flows if (last := flow.queue.last_fresh()) is not None]
    if fresh:
        return max(fresh, key=lambda each: each.position)
    return next(run for run in reversed(tenant.runs.values()) if run.state is not RunState.IN_FLIGHT)
