"""Everything a shard knows, and the few moves that every part of a step shares.

The rules live elsewhere, each in its file: `admission`, `outcomes`, `endings`, `dispatching`, `policy_change`,
`removal`, `expiry`, `forgetting`, `overload`.
They work on this state and put what they decide into `out`, the effects of the step under way.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from streams.core import groups
from streams.core.classes import Turns, turns_of
from streams.core.effects import Effects, Rejection
from streams.core.estimator import Estimator
from streams.core.flows import Flow, Tenant
from streams.core.lost import Lost
from streams.core.policy import Policy
from streams.core.records import (
    IDLE,
    SHARD,
    FlowRecord,
    PolicyRecord,
    RingRecord,
    ShardRecord,
)
from streams.core.ring import Ring
from streams.core.runs import DELAYED, ENDED, QUEUED, Flight, Run, RunState
from streams.core.sizes import weight_of_names
from streams.core.timers import Timers
from streams.core.window import Window

if TYPE_CHECKING:
    from streams.core.forgetting import Resting
    from streams.core.inputs import Submit
    from streams.core.overload import Backlogs
    from streams.core.policy import PriorityClass
    from streams.core.records import EndedRecord

BUILT_IN = -1  # version of the policy a shard has before anyone stated one

# Reports may give up any number of runs in a step, and can't wait: after so much (`sizes`) payloads are left out.
MAX_GIVEN_UP_BYTES = 32 << 20


class State:
    """The state of one shard. See `records` for what each record means."""

    __slots__ = (
        "backlogs",
        "classes",
        "deadlines",
        "delays",
        "dispatched_bytes",
        "elapsed_ms",
        "ended",
        "estimator",
        "flights",
        "given_up_bytes",
        "heaviest",
        "held_bytes",
        "known_flows",
        "leases",
        "lost",
        "more",
        "out",
        "overdue",
        "pages",
        "policy",
        "queued_runs",
        "record",
        "removed",
        "resting",
        "revoked",
        "rings",
        "tenants",
        "turns",
        "window",
    )

    def __init__(self, record: ShardRecord, policy: PolicyRecord) -> None:
        """Begin with a shard record and a policy, and nothing else."""
        self.record = record
        self.policy = policy
        self.estimator = Estimator()
        self.window = Window()
        self.tenants: dict[str, Tenant] = {}
        self.rings: dict[str, Ring] = {}  # in order of priority
        self.classes: dict[str, PriorityClass] = {}  # of the policy in force
        self.turns: Turns | None = None  # only where classes don't simply go in order
        self.flights: dict[tuple[str, str, int], Flight] = {}
        self.revoked: set[tuple[str, str]] = set()  # == the runs of the flights that are revoked
        self.leases: Timers[Flight] = Timers(Flight.due_ms)  # on the lease clock: now_ms - outage_ms
        self.delays: Timers[Run] = Timers(Run.ready_due_ms)  # on the wall clock, as are deadlines
        self.deadlines: Timers[Run] = Timers(Run.deadline_due_ms)
        self.overdue: Timers[Run] = Timers(Run.overdue_since_ms)
        self.pages: deque[EndedRecord] = deque()  # oldest first
        self.ended: dict[tuple[str, str], EndedRecord] = {}  # the runs on the pages, each with its page
        self.lost = Lost()  # accounts on the pages that may still be amended
        self.known_flows = 0  # == flows of all rings
        self.queued_runs = 0  # == sum of the tenants', as is held_bytes
        self.held_bytes = 0  # bodies of the runs that have not ended
        self.backlogs: Backlogs | None = None  # by tokens that wait; like the next two only once it is needed
        self.heaviest: Backlogs | None = None  # by bytes that are held
        self.resting: Resting | None = None  # flows that may be forgotten
        self.removed: deque[Tenant] = deque()  # their queued runs are to be rejected, see `removal`
        self.more = False  # the last step has left something undone that could be done at once
        self.given_up_bytes = 0  # in the step under way, by weight (`sizes`): accepted runs rejected, attempts lost
        self.dispatched_bytes = 0
        self.elapsed_ms = 0  # between the last two steps
        self.out = Effects(record.step, record.now_ms)
        self.adopt_policy()

    def adopt_policy(self) -> None:
        """Work out what follows from the policy: classes, their order, the window."""
        policy: Policy = self.policy.policy
        self.classes = {class_.name: class_ for class_ in policy.classes}
        old = self.rings
        # A class that the policy no longer names is served last, until it is empty. One that never had a flow is gone.
        unnamed = sorted(name for name in old if name not in self.classes and old[name].record.next_place)
        names = [*self.classes, *unnamed]
        self.rings = {name: old.get(name) or Ring(RingRecord(class_=name)) for name in names}
        self.turns = turns_of(policy, self.rings, self.record)
        self.window.resize(policy.window, self.record.shard, self.record.shards)
        self.backlogs = self.heaviest = self.resting = None  # they are by weight

    @property
    def lease_now(self) -> int:
        """Return the time on the lease clock, which stands still while the shard has no owner."""
        return self.record.now_ms - self.record.outage_ms

    def begin(self, now_ms: int) -> Effects:
        """Begin a step: its number, its time (never before the last one's) and its empty effects."""
        record = self.record
        record.step += 1
        before = record.now_ms
        record.now_ms = max(now_ms, before)
        self.more = False
        self.given_up_bytes = 0
        self.dispatched_bytes = 0
        self.elapsed_ms = record.now_ms - before if before else 0
        self.out = Effects(record.step, record.now_ms)
        self.out.changed[(SHARD,)] = record
        return self.out

    def tenant(self, name: str) -> Tenant:
        """Return a tenant, known or new."""
        tenant = self.tenants.get(name)
        if tenant is None:
            policy = self.policy.policy
            tenant = self.tenants[name] = Tenant(name, policy.rules_for(name))
            tenant.barred |= policy.removes(name)
        return tenant

    def new_flow(self, class_: str, tenant: str) -> Flow:
        """Make the flow of a tenant in a class known; it gets the ring's next place.

        Once the cursor has moved, its first visit falls in the next round, as if it had been visited in this one. Its
        place is behind all others: if it joined the round under way, new names, one after the other, would keep that
        round from ever ending, and everybody before them from being served (as would names that were forgotten).
        """
        ring = self.rings[class_]
        record = FlowRecord(class_=class_, tenant=tenant, place=ring.record.next_place)
        ring.record.next_place += 1
        flow = self.add_flow(record)
        flow.accrued = ring.record.round if ring.record.cursor >= 0 else ring.record.round - 1
        self.out.changed[ring.key] = ring.record
        return flow

    def add_flow(self, record: FlowRecord) -> Flow:
        """Make a flow known, in whatever state its record is."""
        tenant = self.tenant(record.tenant)
        flow = Flow(record, tenant, self.policy.policy.quantum)
        tenant.flows.append(flow)
        tenant.flows.sort(key=lambda each: each.class_)  # the same order after a load
        self.rings[record.class_].add(flow)
        groups.assign(flow, self.policy.policy)
        self.known_flows += 1
        return flow

    def refresh(self, tenant: Tenant) -> None:
        """Put all flows of a tenant where they belong now. Call after a change of its caps' use or its deficits."""
        changed = self.out.changed
        for flow in tenant.flows:
            ring = flow.ring
            before, current, largest = flow.state, ring.current, ring.record.max_estimate
            ring.refresh(flow)
            if ring.rerated:
                changed.update((each.key, each) for each in ring.rerated)
                changed[ring.key] = ring.record
                ring.rerated.clear()
            if flow.state is not before or ring.current is not current:
                changed[flow.key] = flow
                changed[ring.key] = ring.record
                if flow.state is IDLE and not flow.open:
                    self.rest(flow)
            elif ring.record.max_estimate != largest:
                changed[ring.key] = ring.record

    def rest(self, flow: Flow) -> None:
        """Note that a flow has come to rest: idle, and nothing can change its balance but rounds that pass."""
        self.record.uses += 1
        flow.left = self.record.uses
        self.out.changed[flow.key] = flow
        if self.resting is not None and not self.resting.put(flow):
            self.resting = None

    def close(self, flow: Flow) -> None:
        """Count off something that was open in a flow: a run, a revoked attempt, the account of a lost one."""
        flow.open -= 1
        if not flow.open and flow.state is IDLE:
            self.rest(flow)

    def enqueue(self, run: Run) -> None:
        """Queue a run, or let it wait for its time first. The caller refreshes the tenant."""
        run.state = DELAYED if run.ready_ms > self.record.now_ms else QUEUED
        flow = run.flow
        tenant = flow.parent
        tenant.queued_runs += 1
        tenant.queued_tokens += run.estimate
        self.queued_runs += 1
        if self.backlogs is not None:
            self.backlogs.note(tenant)
        if self.heaviest is not None:
            self.heaviest.note(tenant)
        if run.state is QUEUED:
            flow.queue.put(run)
        else:
            self.delays.set(run.ready_ms, run.position, run)
        if run.deadline_ms is not None:
            self.deadlines.set(run.deadline_ms, run.position, run)

    def dequeue(self, run: Run, state: RunState) -> None:
        """Take a queued or delayed run out of its queue. The caller refreshes the tenant."""
        flow = run.flow
        tenant = flow.parent
        tenant.queued_runs -= 1
        tenant.queued_tokens -= run.estimate
        self.queued_runs -= 1
        if run.state is QUEUED:
            flow.queue.drop(run, state)
        else:
            run.state = state

    def set_aside(self, run: Run) -> None:
        """Take a queued or delayed run that is overdue out of its queue; it still counts as waiting.

        The caller refreshes the tenant.
        """
        if run.state is QUEUED:
            run.flow.queue.drop(run, RunState.OVERDUE)
        else:
            run.state = RunState.OVERDUE
        assert run.deadline_ms is not None, "what is overdue has a deadline"
        self.overdue.set(run.deadline_ms, run.position, run)

    def hold_run(self, run: Run) -> None:
        """Make a run known to its tenant: it has not ended."""
        flow, size = run.flow, len(run.body)
        tenant = flow.parent
        tenant.runs[run.run_id] = run
        tenant.held_bytes += size
        self.held_bytes += size
        flow.open += 1

    def forget_run(self, run: Run) -> None:
        """End a run that is no longer queued as if it had never come: its producer may send it again."""
        flow, out = run.flow, self.out
        run.state = ENDED
        tenant, size = flow.parent, len(run.body)
        del tenant.runs[run.run_id]
        tenant.held_bytes -= size
        self.held_bytes -= size
        flow.ended += 1
        changed = out.changed
        changed[flow.key] = flow
        changed[run.key] = None
        if run.retried:
            changed[run.retry_key] = None
        self.close(flow)

    def reject(
        self,
        given: Submit | Run,
        reason: str,
        detail: str,
        *,
        limit: int | None,
        value: int | None,
        retry_after_ms: int | None = None,
    ) -> None:
        """Say that a run will not be served (again), and why; see `Rejection`. Changes nothing else."""
        body = given.body
        if isinstance(given, Run):
            body = body if self.given_up_bytes < MAX_GIVEN_UP_BYTES else b""
            self.given_up_bytes += weight_of_names(given) + len(body)
        left_out = len(given.body) - len(body)
        self.out.rejections.append(
            Rejection(
                given.tenant, given.run_id, reason, detail, limit, value, retry_after_ms, given.position, body, left_out
            )
        )

    def hold(self, flight: Flight) -> None:
        """Give an attempt its place in the window, and wait for its lease to run out."""
        tenant, window = flight.flow.parent, self.window
        self.flights[flight.tenant, flight.run_id, flight.attempt] = flight
        if flight.revoked:
            self.revoked.add((flight.tenant, flight.run_id))
            flight.flow.open += 1
        window.runs += 1
        window.tokens += flight.estimate
        tenant.flight_runs += 1
        tenant.flight_tokens += flight.estimate
        self.leases.set(flight.expires_ms, flight.seq, flight)

    def release(self, flight: Flight) -> None:
        """Take an attempt's place in the window back. The caller refreshes the tenant."""
        tenant, window = flight.flow.parent, self.window
        del self.flights[flight.tenant, flight.run_id, flight.attempt]
        flight.open = False
        if flight.revoked:
            self.revoked.discard((flight.tenant, flight.run_id))
            self.close(flight.flow)
        window.runs -= 1
        window.tokens -= flight.estimate
        tenant.flight_runs -= 1
        tenant.flight_tokens -= flight.estimate
        self.out.changed[flight.key] = None
