"""Everything that must hold between two steps, worked out again from scratch. For tests and for the doubtful.

`check` reads the private parts of a shard on purpose: what it proves is that the running totals, the heap and the
timers still say what the records say.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from streams.core import gap
from streams.core.flows import NOT_IN_HEAP
from streams.core.memory_checks import memory_faults
from streams.core.records import FlowState
from streams.core.runs import Run, RunState

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.policy import Policy
    from streams.core.ring import Ring
    from streams.core.shard import Shard
    from streams.core.state import State


class InvariantBroken(AssertionError):
    """A shard contradicts itself: a bug in the core. Keep its rows and journal, and report it."""


def check(shard: Shard) -> None:
    """Raise `InvariantBroken`, naming the first thing found wrong, or return. O(everything)."""
    state = shard._state  # noqa: SLF001 - see the module docstring
    _check_window(state)
    _check_rules(state)
    _check_turns(state)
    _check_queues(state)
    _check_accounts(state)
    _check_timers(state)
    in_flight = Counter((flight.class_, flight.tenant) for flight in state.flights.values())
    for ring in state.rings.values():
        _check_ring(ring)
        _check_gap(ring, state.policy.policy.quantum, in_flight)
    remembered = {run: page for page in state.pages for run in page.runs}
    _require(state.ended == remembered, "ended runs differ from the pages")
    for fault in memory_faults(state):
        raise InvariantBroken(fault)


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not condition:
        raise InvariantBroken(what)


def _check_window(state: State) -> None:
    flights = state.flights.values()
    _require(state.window.runs == len(flights), "window: runs in flight")
    _require(state.window.tokens == sum(f.estimate for f in flights), "window: tokens in flight")
    _require(state.revoked == {(f.tenant, f.run_id) for f in flights if f.revoked}, "revoked runs")
    for tenant in state.tenants.values():
        own = [f for f in flights if f.tenant == tenant.name]
        _require(tenant.flight_runs == len(own), f"{tenant.name}: runs in flight")
        _require(tenant.flight_tokens == sum(f.estimate for f in own), f"{tenant.name}: tokens in flight")


def _check_rules(state: State) -> None:
    policy = state.policy.policy
    names = [class_.name for class_ in policy.classes]
    _require(list(state.rings)[: len(names)] == names, "classes: not in the policy's order")
    for tenant in state.tenants.values():
        _require(tenant.rules == policy.rules_for(tenant.name), f"{tenant.name}: rules of another policy")
        barred = tenant.rules.paused or policy.removes(tenant.name)
        _require(tenant.barred == barred, f"{tenant.name}: barred, or not, against the policy")
    for ring in state.rings.values():
        _check_rates(ring, policy)


def _check_rates(ring: Ring, policy: Policy) -> None:
    weights: Counter[str | None] = Counter()
    for flow in ring.flows.values():
        if flow.state is FlowState.ACTIVE:
            weights[flow.parent.rules.group] += flow.parent.rules.weight
    for flow in ring.flows.values():
        rules, active = flow.parent.rules, flow.state is FlowState.ACTIVE
        rate = policy.quantum * rules.weight
        if rules.group is not None:
            rate = max(1, rate * policy.groups[rules.group] // weights[rules.group]) if active else 0
        _require(flow.rate == rate, f"{flow.tenant}: earns at another rate")
        due = active and rules.group is not None and flow.accrued < ring.record.round and not flow.half_visit
        _require(due or not flow.extra, f"{flow.tenant}: earns more or less than its rate, but not in a group's round")
    _require(not ring.rerated, f"{ring.record.class_}: a new rate has not been written")


def _check_turns(state: State) -> None:
    policy, rings = state.policy.policy, state.rings
    by_weight = policy.between_classes == "shares"
    decides = len(rings) > 1 and (by_weight or any(each.min_share for each in policy.classes))
    _require((state.turns is not None) == decides, "classes: turns where there is nothing to decide, or none")
    for name, ring in rings.items():
        _require(name in state.classes or ring.record.next_place > 0, f"{name}: unnamed, and never had a flow")
        _require(ring.record.tag == 0 or ring.record.next_place > 0, f"{name}: booked without ever having had a flow")
        waits = state.turns is not None and name in state.turns.shares and ring.came_back
        _require(not waits, f"{name}: came back and was not welcomed")


def _check_queues(state: State) -> None:
    total, now = 0, state.record.now_ms
    for tenant in state.tenants.values():
        waiting = [run for run in tenant.runs.values() if run.state is not RunState.IN_FLIGHT]
        _require(tenant.queued_runs == len(waiting), f"{tenant.name}: queued runs")
        _require(tenant.queued_tokens == sum(run.estimate for run in waiting), f"{tenant.name}: queued tokens")
        total += len(waiting)
        for run in tenant.runs.values():
            _require(run.state is not RunState.ENDED, f"{tenant.name}: run {run.run_id} has ended and is still known")
            overdue = run.state is not RunState.IN_FLIGHT and run.deadline_ms is not None and run.deadline_ms <= now
            _require(overdue == (run.state is RunState.OVERDUE), f"{tenant.name}: run {run.run_id} is overdue or not")
            in_flight = (run.tenant, run.run_id, run.attempt) in state.flights
            _require(
                in_flight or run.state is not RunState.IN_FLIGHT, f"{tenant.name}: run {run.run_id} has no attempt"
            )
        for flow in tenant.flows:
            queued = {run.run_id for run in flow.queue}
            expected = {r.run_id for r in waiting if r.class_ == flow.class_ and r.state is RunState.QUEUED}
            _require(queued == expected, f"{tenant.name}: the queue differs from the runs that are queued")
            _require(len(flow.queue) == len(queued), f"{tenant.name}: length of the queue")
            tokens = sum(run.estimate for run in flow.queue)
            _require(flow.queue.tokens == tokens, f"{tenant.name}: tokens in the queue")
    _require(state.queued_runs == total, "queued runs of the shard")


def _check_accounts(state: State) -> None:
    open_charges: Counter[tuple[str, str]] = Counter()
    for flight in state.flights.values():
        open_charges[flight.class_, flight.tenant] += flight.charged
        _require(flight.charged >= flight.estimate, f"{flight.tenant}: charged less than the estimate in flight")
    for ring in state.rings.values():
        for flow in ring.flows.values():
            expected = flow.actual + open_charges[flow.class_, flow.tenant]
            _require(flow.charged == expected, f"{flow.tenant}: charged {flow.charged} != actual + open {expected}")


def _check_timers(state: State) -> None:
    """Each item that waits has an entry that comes up in time: an item that was put off may have an earlier one."""
    leases = state.leases.earliest()
    waits = (
        (state.delays.earliest(), Run.ready_due_ms),
        (state.deadlines.earliest(), Run.deadline_due_ms),
        (state.overdue.earliest(), Run.overdue_since_ms),
    )
    for flight in state.flights.values():
        _require(flight.seq <= state.record.seq, f"{flight.tenant}: an attempt is ahead of the sequence")
        _require(leases.get(flight.seq, flight.expires_ms + 1) <= flight.expires_ms, f"{flight.tenant}: no lease timer")
    for tenant in state.tenants.values():
        for run in tenant.runs.values():
            for earliest, due_of in waits:
                due = due_of(run)
                in_time = due is None or earliest.get(run.position, due + 1) <= due
                _require(in_time, f"{tenant.name}: run {run.run_id} has no timer")


def _check_ring(ring: Ring) -> None:
    record = ring.record
    _require(record.visiting == (ring.current is not None), f"{record.class_}: visiting")
    _require(
        ring.active == sum(f.state is FlowState.ACTIVE for f in ring.flows.values()), f"{record.class_}: active flows"
    )
    in_heap = ring.waiting()
    for place, flow in ring.flows.items():
        name = f"{record.class_}/{flow.tenant}"
        _require(place == flow.place < record.next_place, f"{name}: place")
        _require(flow.accrued <= record.round, f"{name}: earned a round that has not come")
        _require((flow.eligible, place) in in_heap or flow.eligible == NOT_IN_HEAP, f"{name}: missing from the heap")
        _check_flow(ring, flow, name)
    blocked = sum(flow.state is FlowState.BLOCKED for flow in ring.flows.values())
    _require(ring.blocked == blocked, f"{record.class_}: blocked flows")


def _check_flow(ring: Ring, flow: Flow, name: str) -> None:
    head = flow.queue.head()
    if flow.state is FlowState.IDLE:
        _require(head is None, f"{name}: idle with work")
        _require(flow.eligible == NOT_IN_HEAP, f"{name}: idle in the heap")
        return
    if head is None:
        raise InvariantBroken(f"{name}: {flow.state.name} without work")
    room = flow.parent.has_room(head.estimate)
    _require(room == (flow.state is FlowState.ACTIVE), f"{name}: {flow.state.name} but room is {room}")
    if flow is ring.current:
        _require(flow.place == ring.record.cursor and flow.accrued == ring.record.round, f"{name}: visited elsewhere")
        _require(flow.deficit >= head.estimate, f"{name}: visited but can't afford its head")
    elif flow.state is FlowState.ACTIVE:
        _require(flow.eligible > ring.passed(flow), f"{name}: its turn has passed")
        earned = flow.deficit + flow.rate * (flow.eligible - flow.accrued - flow.half_visit) + flow.extra
        _require(earned >= head.estimate, f"{name}: eligible before it can afford its head")
    else:
        _require(flow.eligible == NOT_IN_HEAP, f"{name}: blocked in the heap")


def _check_gap(ring: Ring, quantum: int, in_flight: Counter[tuple[str, str]]) -> None:
    """The bound holds for every flow and for the class, and what a flow is owed is what its deficit says."""
    record = ring.record
    figures = (record.max_estimate, record.max_under, record.max_over)
    _require(ring.active + ring.blocked > 0 or not any(figures), f"{record.class_}: at rest with figures of a bound")
    for flow in ring.flows.values():
        if flow.state is FlowState.IDLE:
            continue
        name, owed, most = f"{record.class_}/{flow.tenant}", gap.owed(flow), gap.allowance(flow)
        _require(flow.peak >= in_flight[flow.class_, flow.tenant], f"{name}: more in flight than its peak")
        blocked = flow.state is FlowState.BLOCKED  # it has no rate in a group: what it holds is looked at on its return
        _require(blocked or owed <= flow.rate + most, f"{name}: owed {owed}, more than the bound allows")
        _require(owed >= -most, f"{name}: owed {owed}, less than the bound allows")
        _require(owed == ring.deficit_now(flow), f"{name}: owed {owed}, which is not its deficit")
    observed, bound = gap.widest(ring.flows.values(), quantum)
    _require(observed <= bound, f"{record.class_}: the gap {observed} is above the bound {bound}")
