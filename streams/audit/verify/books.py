"""The books of one shard, kept from what the topics say: runs that have not ended, attempts in flight, accounts.

They are moved by what happened, never by what the core would decide: no ring, no rounds, no estimates are worked out.
Memory is that of what is open, of the tenants, and of the ended runs that the policy says are remembered.

`whole` is False where the books begin in the middle: what began before is not known, and is no problem then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from streams.audit.verify.memory import Memory
from streams.audit.verify.stretch import Figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.audit.verify.intervals import Interval
    from streams.audit.verify.stretch import Stretch
    from streams.core.policy import Policy, TenantRules

Identity = tuple[str, str]  # tenant, run_id
Key = tuple[str, str, int]  # tenant, run_id, attempt


class Place(Enum):
    """Where a run is."""

    READY = auto()  # queued, and may go
    DELAYED = auto()  # waits for its time
    OVERDUE = auto()  # past its deadline, still to be refused
    IN_FLIGHT = auto()
    ENDED = auto()


@dataclass(slots=True)
class Tenant:
    """What a tenant has open, over its flows."""

    name: str
    rules: TenantRules
    barred: bool  # paused, or its runs are to be rejected
    queued: int = 0  # == its runs that are READY, DELAYED or OVERDUE
    flight_runs: int = 0
    flight_tokens: int = 0
    # The sides of `charged = settled + in flight`, tokens, each summed for itself.
    charged: int = 0
    settled: int = 0

    @property
    def plain(self) -> bool:
        """Whether it earns its weight in every round in which it has something queued: no cap, no group, no bar."""
        rules = self.rules
        capped = rules.max_runs_in_flight is not None or rules.max_tokens_in_flight is not None
        return not (self.barred or capped or rules.group is not None)


@dataclass(slots=True)
class Flow:
    """A (class, tenant)."""

    class_: str
    tenant: Tenant
    ready: int = 0  # == its runs that are READY
    heads: list[tuple[int, int, Run]] = field(default_factory=list)  # heap by position; some are READY no more
    charged: int = 0  # tokens, as are the next
    settled: int = 0
    dispatched: int = 0  # attempts
    peak: int = 1  # most attempts of its tenant in flight, plus late bills, since it last had nothing ready
    busy_since_ms: int = 0  # since when it has had something ready without a break, its rules being what they are
    stretch: Stretch | None = None  # what is measured of it while it is busy and plain
    due: list[Interval] = field(default_factory=list)  # intervals that wait for what its head costs

    def first(self) -> Run | None:
        """Return the READY run that came first."""
        heads = self.heads
        while heads and heads[0][2].place is not Place.READY:
            heappop(heads)
        return heads[0][2] if heads else None


@dataclass(slots=True)
class Run:
    """A run that has not ended."""

    flow: Flow
    run_id: str
    position: int  # offset of its request; below 0: not known
    ready_ms: int
    deadline_ms: int | None
    max_attempts: int
    lease_ms: int | None  # None: not known
    size: int  # bytes of its body
    asked: bytes  # digest of what its request says to the worker; empty: not known
    place: Place = Place.ENDED
    estimate: int | None = None  # tokens; None: never dispatched
    attempt: int = 0
    tries: int = 0
    lost: dict[int, int] = field(default_factory=dict)  # attempts given up, by number: tokens they were settled at

    @property
    def tenant(self) -> str:
        return self.flow.tenant.name

    @property
    def identity(self) -> Identity:
        return (self.flow.tenant.name, self.run_id)

    @property
    def waits(self) -> bool:
        """Whether it counts as queued."""
        return self.place in {Place.READY, Place.DELAYED, Place.OVERDUE}


@dataclass(slots=True)
class Attempt:
    """An attempt in flight."""

    run: Run
    number: int
    seq: int
    estimate: int
    charged: int
    expires_ms: int | None  # on the lease clock; None: not known
    reported: int = 0
    heard: bool = False
    revoked: bool = False
    interval: Interval | None = None  # in which it was dispatched

    @property
    def key(self) -> Key:
        return (*self.run.identity, self.number)


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
                self._rest(flow)
            flow.heads.clear()
        self._ready.clear()
        self.runs.clear()
        self.flights.clear()
        self.revoked.clear()
        self.memory = Memory()
        self._delays, self._deadlines = [], []
        for tenant in self.tenants.values():
            tenant.queued = tenant.flight_runs = tenant.flight_tokens = tenant.charged = tenant.settled = 0
        self.queued = self.flight_runs = self.flight_tokens = self.held_bytes = 0

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
            self._rest(flow)

    def _rest(self, flow: Flow) -> None:
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
        flow.tenant.settled += actual
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
        flow.tenant.charged += tokens


def _nothing(_: Flow) -> None:
    """Nobody wants to know."""
