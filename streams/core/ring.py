"""The ring of a class: who is visited next, by deficit round robin, without walking the ring.

Rules of this file: integers only; a flow's `state`, `accrued`, `half_visit` and credit change nowhere else.

The ring holds the flows in the order of their `place`, which they got when they first became active. A *visit*
adds one quantum x weight (`rate`) to the flow's deficit and dispatches while the deficit covers the head's
estimate. A *round* is one pass over the places; the *cursor* is the place visited last in this round.

A newcomer's place is behind all others, and its first visit is in the next round (if the cursor has not moved yet, in
this one): else new names, one after the other, would keep the round from ending (`State.new_flow`). Who returns keeps
its place: visited in this round if the cursor has yet to reach it, else in the next, so never twice in one.

Nothing is walked. Between two visits that dispatch something, a flow only earns, `rate` a round, so the round
in which its head becomes affordable can be computed:

    eligible = accrued + max(1, ceil((cost - deficit) / rate))

where `accrued` is the last round whose quantum is in `deficit`. A heap over (eligible, place) yields the visits
of the plain sweep that dispatch something, in the same order, each for O(log active), whatever cost/quantum is.
An event in between (a refund, another head, another weight) changes deficit or cost and so `eligible`, which
never falls before the next time the cursor reaches the flow's place.

Who has nothing queued is `IDLE` and not in the ring: credit is dropped on leaving, debt kept, and both fade by
`rate` for each round that passes the flow's place (see `ledger.fade`). Who may not dispatch (own cap, paused) is
`BLOCKED`: out of the ring, it neither earns nor repays. If the cap breaks a visit off, the rest of that quantum
is kept and the next visit earns nothing, so a cap can't wind credit up. If the window fills in the middle of a
visit, the flow stays `current` and goes on later: no second quantum, no lost place.

Members of a group change each other's `rate` by coming and going: from the next round on (`groups`). In the round
under way a visit earns `rate + extra`, so the formula has `deficit + extra` for `deficit`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from streams.core import gap
from streams.core.flows import NOT_IN_HEAP, Flow
from streams.core.ledger import fade
from streams.core.records import ACTIVE, BLOCKED, IDLE, RING, FlowState, Key, RingRecord

if TYPE_CHECKING:
    from streams.core.groups import Group
    from streams.core.runs import Run

PLACE_BITS: Final = 40  # a heap entry is eligible << PLACE_BITS | place: one integer compares faster than a pair
_PLACE_MASK: Final = (1 << PLACE_BITS) - 1
_SLACK: Final = 64  # stale heap entries that are not worth a clean-up


class Ring:
    """The flows of one class and their virtual time."""

    __slots__ = ("_heap", "active", "blocked", "came_back", "current", "flows", "groups", "key", "record", "rerated")

    def __init__(self, record: RingRecord) -> None:
        """Begin with a record and no flows."""
        self.record = record
        self.key: Key = (RING, record.class_)
        self.flows: dict[int, Flow] = {}  # by place, every flow known
        self.current: Flow | None = None  # in the middle of its visit; not in the heap
        self.active = 0  # == flows that are ACTIVE
        self.blocked = 0  # == flows that are BLOCKED
        self.came_back = False  # it had nothing queued till now: `classes` takes note and forgets it
        self.groups: dict[str, Group] = {}
        self.rerated: list[Flow] = []  # whose rate has changed because others of their group came or went
        self._heap: list[int] = []  # may hold stale entries: the flow's `eligible` tells

    def add(self, flow: Flow) -> None:
        """Make a flow known. Its state is taken as it is; call `refresh` when it may have work."""
        self.flows[flow.place] = flow
        flow.ring = self
        if flow.state is ACTIVE:
            self.active += 1
        elif flow.state is BLOCKED:
            self.blocked += 1

    def forget(self, flow: Flow) -> None:
        """Know a flow no more. It must be IDLE; its balance is lost, and its place is given to nobody else."""
        assert flow.state is IDLE, "who has work is not forgotten"
        del self.flows[flow.place]

    def restore(self, flow: Flow) -> None:
        """Put a flow that was loaded as ACTIVE back where it was, and go on with a half-done visit."""
        if flow.group is not None:
            flow.rate = flow.group.share(flow)
        if self.record.visiting and flow.place == self.record.cursor:
            self.current = flow
        else:
            self._schedule(flow)

    def passed(self, flow: Flow) -> int:
        """Return the last round in which the cursor has come past (or stands at) the flow's place."""
        record = self.record
        return record.round if flow.place <= record.cursor else record.round - 1

    def catch_up(self, flow: Flow) -> None:
        """Book the rounds that have passed the flow since `accrued`, by its state and its present rate."""
        passed = self.passed(flow)
        if passed <= flow.accrued:
            return
        flow.deficit = self.deficit_now(flow)
        flow.accrued = passed
        if flow.half_visit and flow.state is ACTIVE:
            flow.half_visit = False  # the visit that was owed has come
            gap.earn_nothing(flow)
        if flow.extra:
            gap.earn_extra(flow)
            flow.extra = 0

    def refresh(self, flow: Flow) -> None:
        """Put the flow where its queue, its tenant's caps and its deficit say it belongs.

        To be called after any change of these. Afterwards: IDLE if nothing is queued, BLOCKED if the head may not
        start, else ACTIVE, and then either `current` (its visit can go on) or in the heap at its eligible round.
        """
        head = flow.queue.head()
        room = head is not None and flow.parent.has_room(head.estimate)
        if flow is self.current:
            assert head is None or flow.accrued == self.record.round
            if head is not None and room and flow.deficit >= head.estimate:
                return
            self._end_visit(flow, head)
        state = flow.state
        if head is None:
            if state is not IDLE:
                self._leave(flow)
        elif not room:
            if state is not BLOCKED:
                self._block(flow)
        else:
            if state is not ACTIVE:
                self._enter(flow)
            self._schedule(flow, head)

    def deficit_now(self, flow: Flow) -> int:
        """Return the deficit with all rounds booked that have passed the flow, without booking them."""
        rounds = self.passed(flow) - flow.accrued
        if rounds <= 0 or flow.state is BLOCKED:
            return flow.deficit
        if flow.state is IDLE:
            return fade(flow.deficit, rounds * flow.rate)
        return flow.deficit + (rounds - flow.half_visit) * flow.rate + flow.extra

    def waiting(self) -> set[tuple[int, int]]:
        """Return (eligible round, place) of everything in the heap, stale entries included."""
        return {(entry >> PLACE_BITS, entry & _PLACE_MASK) for entry in self._heap}

    def next(self) -> Flow | None:
        """Return the flow whose turn it is, in the middle of its visit, or None if nobody is active.

        Its head is affordable and its tenant has room. The visit lasts until `refresh` finds that it can't go on.
        """
        if self.current is not None:
            return self.current
        heap, flows = self._heap, self.flows
        while heap:
            entry = heappop(heap)
            flow = flows.get(entry & _PLACE_MASK)
            if flow is not None and flow.eligible == entry >> PLACE_BITS:
                self._begin_visit(flow)
                return flow
        return None

    def first(self) -> Flow | None:
        """Return the flow that `next` would lead to, without beginning a visit; None if nobody is active."""
        flow = self.current
        if flow is not None:
            return flow
        heap, flows = self._heap, self.flows
        while heap:
            entry = heap[0]
            flow = flows.get(entry & _PLACE_MASK)
            if flow is not None and flow.eligible == entry >> PLACE_BITS:
                return flow
            heappop(heap)
        return None

    def peek(self) -> int | None:
        """Return what the head costs that `next` would lead to; None if nobody is active."""
        flow = self.first()
        if flow is None:
            return None
        head = flow.queue.head()
        assert head is not None, "an active flow has work"
        return head.estimate

    def _begin_visit(self, flow: Flow) -> None:
        record = self.record
        rounds = flow.eligible - flow.accrued
        if flow.half_visit:
            flow.half_visit = False
            gap.earn_nothing(flow)
            rounds -= 1
        flow.deficit += rounds * flow.rate
        flow.accrued = record.round = flow.eligible
        record.cursor = flow.place
        record.visiting = True
        flow.eligible = NOT_IN_HEAP
        if flow.extra:
            flow.deficit += flow.extra
            gap.earn_extra(flow)
            flow.extra = 0
        self.current = flow

    def _end_visit(self, flow: Flow, head: Run | None) -> None:
        record = self.record
        self.current = None
        record.visiting = False
        if head is None:
            flow.half_visit = False
            return
        # What is left is saved for the head, even if its tenant's cap keeps it out of the heap for good.
        if head.estimate > record.max_estimate:
            record.max_estimate = head.estimate
        # An affordable head that has to stay means that the cap broke the visit off.
        flow.half_visit = flow.deficit >= head.estimate

    def _enter(self, flow: Flow) -> None:
        self.came_back |= not self.active and not self.blocked
        self.catch_up(flow)
        if flow.state is BLOCKED:
            self.blocked -= 1
            gap.resume(flow)
        else:
            gap.begin(flow)
        flow.state = ACTIVE
        self.active += 1
        group = flow.group
        if group is not None:
            group.enter(flow)
            self._share_out(group)

    def _leave(self, flow: Flow) -> None:
        self.catch_up(flow)
        self._out(flow, IDLE)
        flow.half_visit = False
        flow.deficit = min(0, flow.deficit)
        if not self.active and not self.blocked:
            gap.reset(self.record)

    def _block(self, flow: Flow) -> None:
        self.came_back |= not self.active and not self.blocked
        self.catch_up(flow)
        if flow.state is IDLE:
            gap.begin(flow)
        gap.pause(flow)
        self._out(flow, BLOCKED)
        self.blocked += 1

    def _out(self, flow: Flow, state: FlowState) -> None:
        if flow.state is ACTIVE:
            self.active -= 1
            group = flow.group
            if group is not None:
                group.leave(flow)
                flow.rate = flow.extra = 0
                self._share_out(group)
        elif flow.state is BLOCKED:
            self.blocked -= 1
        flow.state = state
        flow.eligible = NOT_IN_HEAP

    def _share_out(self, group: Group) -> None:
        """Give the active members of a group their new shares, which bind from the next round on."""
        for place in sorted(group.active):
            flow = group.active[place]
            rate = group.share(flow)
            if rate == flow.rate:
                continue
            self.catch_up(flow)
            visited = flow.accrued == self.record.round or flow.half_visit  # or: its visit will earn nothing
            flow.extra = 0 if visited else flow.rate + flow.extra - rate
            gap.rerate(flow, rate)
            flow.rate = rate
            self.rerated.append(flow)
            if flow is not self.current:
                self._schedule(flow)

    def _schedule(self, flow: Flow, head: Run | None = None) -> None:
        """Work out the round in which the flow's visit will dispatch, and wait for it in the heap."""
        if head is None:
            head = flow.queue.head()
            assert head is not None, "an active flow has work"
        record, cost = self.record, head.estimate
        if cost > record.max_estimate:
            record.max_estimate = cost
        visits = -((flow.deficit + flow.extra - cost) // flow.rate)  # == ceil((cost - deficit) / rate)
        if visits < 1:
            visits = 1
        elif flow.half_visit:
            visits += 1  # the next visit earns nothing
        eligible = flow.accrued + visits
        earliest = record.round + 1 if flow.place <= record.cursor else record.round  # == passed(flow) + 1
        if eligible < earliest:
            eligible = earliest
        if eligible == flow.eligible:
            return
        flow.eligible = eligible
        heappush(self._heap, eligible << PLACE_BITS | flow.place)
        if len(self._heap) > 2 * self.active + _SLACK:
            self._sweep()

    def _sweep(self) -> None:
        """Rebuild the heap without stale entries, so that rescheduling can't fill the memory."""
        places = dict.fromkeys(entry & _PLACE_MASK for entry in self._heap)
        waiting = (self.flows.get(place) for place in places)
        self._heap = [
            flow.eligible << PLACE_BITS | flow.place
            for flow in waiting
            if flow is not None and flow.eligible != NOT_IN_HEAP
        ]
        heapify(self._heap)
