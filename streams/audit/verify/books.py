"""The books of one shard, kept from what the topics say: runs that have not ended, attempts in flight, accounts.

They are moved by what happened, never by what the core would decide: no ring, no rounds, no estimates are worked out.
Memory is that of what is open, of the tenants, and of the ended runs that the policy says are remembered.

`whole` is False where the books begin in the middle: what began before is not known, and is no problem then.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from streams.audit.verify.memory import Memory
from streams.audit.verify.stretch import Figures
from streams.audit.verify.subjects import Attempt, Flow, Identity, Key, Place, Run, Tenant

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.core.policy import Policy


class Books:
    """One shard's."""

    def __init__(self, shard: int, shards: int) -> None:
        self.shard: Final = shard
        self.shards: Final = shards
        self.whole = True
        self.policy: Policy | None = None  # None: not known
        self.now_ms = 0
        self.outage_ms = 0
        self.tenants: Final[dict[str, Tenant]] = {}
        self.flows: Final[dict[tuple[str, str], Flow]] = {}
        self.runs: Final[dict[Identity, Run]] = {}
        self.flights: Final[dict[Key, Attempt]] = {}
        self.memory = Memory()
        self.revoked: Final[set[Identity]] = set()  # == the runs of the attempts that are revoked
        self.on_rest: Callable[[Flow], None] = _nothing  # called when a flow has nothing ready any more
        self._ready: Final[dict[str, int]] = {}  # by class: sum over its flows
        self._figures: Final[dict[str, Figures]] = {}
        self.queued = 0  # == sum over the tenants, as are the next two
        self.flight_runs = 0
        self.flight_tokens = 0
        self.held_bytes = 0  # of the runs that have not ended
        self._delays: list[tuple[int, int, Run]] = []
        self._deadlines: list[tuple[int, int, Run]] = []
        self._entered = 0

    def lose_track(self) -> None:
        """Begin again: something is missing, so what is open is not known any more."""
        self.whole = False
        for flow in self.flows.values():
            if flow.ready:
                flow.ready = 0
                self.rest(flow)
            flow.heads.clear()
        self._ready.clear()
        self.runs.clear()
        self.flights.clear()
        self.revoked.clear()
        self.memory = Memory()
        self._delays, self._deadlines = [], []
        for tenant in self.tenants.values():
            tenant.queued = tenant.flight_runs = tenant.flight_tokens = 0
        self.queued = self.flight_runs = self.flight_tokens = self.held_bytes = 0

    def disturb(self, tenant: str) -> None:
        """Measure a tenant anew: something was booked for it, of which it is not known what it was."""
        known = self.tenants.get(tenant)
        for flow in known.flows if known is not None else ():
            flow.stretch = None
            flow.busy_since_ms = self.now_ms

    @property
    def lease_now(self) -> int:
        return self.now_ms - self.outage_ms

    def tenant(self, name: str) -> Tenant:
        found = self.tenants.get(name)
        if found is None:
            assert self.policy is not None
            found = self.tenants[name] = Tenant(name, self.policy.rules_for(name), barred=False)
            self._obey(found, self.policy)
        return found

    def flow(self, class_: str, tenant: str) -> Flow:
        found = self.flows.get((class_, tenant))
        if found is None:
            found = self.flows[class_, tenant] = Flow(class_, self.tenant(tenant))
            found.tenant.flows.append(found)
        return found

    def figures(self, class_: str) -> Figures:
        """Return the figures of the bound in a class."""
        found = self._figures.get(class_)
        if found is None:
            found = self._figures[class_] = Figures()
        return found

    def adopt(self, policy: Policy) -> None:
        """Put a policy in force."""
        self.policy = policy
        for flow in self.flows.values():
            flow.busy_since_ms = self.now_ms
        for tenant in self.tenants.values():
            self._obey(tenant, policy)

    @staticmethod
    def _obey(tenant: Tenant, policy: Policy) -> None:
        tenant.rules = policy.rules_for(tenant.name)
        tenant.barred = tenant.rules.paused or policy.removes(tenant.name)

    # --- runs

    def hold(self, run: Run) -> None:
        """Make a run known; it waits."""
        self.runs[run.identity] = run
        self.held_bytes += run.size
        self.enqueue(run)

    def enqueue(self, run: Run) -> None:
        """Let a run wait: for its time, or for its turn."""
        run.flow.tenant.queued += 1
        self.queued += 1
        self._entered += 1
        if run.deadline_ms is not None:
            heappush(self._deadlines, (run.deadline_ms, self._entered, run))
        if run.ready_ms > self.now_ms:
            run.place = Place.DELAYED
            heappush(self._delays, (run.ready_ms, self._entered, run))
        else:
            self._make_ready(run)

    def take(self, run: Run, place: Place) -> None:
        """Take a waiting run out of its queue."""
        self._unready(run)
        run.place = place
        run.flow.tenant.queued -= 1
        self.queued -= 1

    def forget(self, run: Run) -> None:
        """Know a run no more, as if it had never come."""
        run.place = Place.ENDED
        self.held_bytes -= run.size
        del self.runs[run.identity]

    def end(self, run: Run, step: int) -> None:
        """End a run that is queued no more, and remember it."""
        self.memory.remember(run.identity, run.flow, step, self.now_ms, run.lost)
        self.forget(run)

    def end_pauses(self) -> None:
        """Set aside what has missed its deadline, and let go what has waited for its time."""
        while self._deadlines and self._deadlines[0][0] <= self.now_ms:
            _, _, run = heappop(self._deadlines)
            if run.place in {Place.READY, Place.DELAYED}:
                self._unready(run)
                run.place = Place.OVERDUE
        while self._delays and self._delays[0][0] <= self.now_ms:
            _, _, run = heappop(self._delays)
            if run.place is Place.DELAYED:
                self._make_ready(run)

    def _make_ready(self, run: Run) -> None:
        flow = run.flow
        if not flow.ready:
            flow.busy_since_ms = self.now_ms
            flow.peak = max(1, flow.tenant.flight_runs)
        run.place = Place.READY
        flow.ready += 1
        self._ready[flow.class_] = self._ready.get(flow.class_, 0) + 1
        self._entered += 1
        heappush(flow.heads, (run.position, self._entered, run))

    def _unready(self, run: Run) -> None:
        if run.place is not Place.READY:
            return
        flow = run.flow
        flow.ready -= 1
        self._ready[flow.class_] -= 1
        if not self._ready[flow.class_]:
            self._figures.pop(flow.class_, None)  # nobody in it has work, so nothing is measured by them
        if not flow.ready:
            self.rest(flow)

    def rest(self, flow: Flow) -> None:
        """Measure a flow no more: it has nothing ready, as far as is known."""
        flow.stretch = None
        self.on_rest(flow)

    # --- attempts

    def start(self, attempt: Attempt) -> None:
        """Charge an attempt that begins, and give it its place in the window."""
        flow, tokens = attempt.run.flow, attempt.estimate
        self.flights[attempt.key] = attempt
        flow.dispatched += 1
        self.charge(flow, tokens)
        flow.tenant.flight_runs += 1
        flow.tenant.flight_tokens += tokens
        self.flight_runs += 1
        self.flight_tokens += tokens
        flow.peak = max(flow.peak, flow.tenant.flight_runs)

    def settle(self, attempt: Attempt, actual: int) -> None:
        """Close the account of an attempt and take its place back."""
        flow = attempt.run.flow
        self.charge(flow, actual - attempt.charged)
        flow.settled += actual
        flow.tenant.flight_runs -= 1
        flow.tenant.flight_tokens -= attempt.estimate
        self.flight_runs -= 1
        self.flight_tokens -= attempt.estimate
        del self.flights[attempt.key]
        if attempt.revoked:
            self.revoked.discard(attempt.run.identity)

    def revoke(self, attempt: Attempt) -> None:
        """Let the account of an attempt stay open, though its run ends."""
        attempt.revoked = True
        self.revoked.add(attempt.run.identity)

    @staticmethod
    def charge(flow: Flow, tokens: int) -> None:
        """Charge a flow more, or less than before."""
        flow.charged += tokens


def _nothing(_: Flow) -> None:
    """Nobody wants to know."""
