"""Forget who has not been here for long, so that inventing tenants can't fill the memory.

Rule: a shard knows at most `memory.flows` (class, tenant)s. A newcomer above that takes the place of the flow that has
been *at rest* the longest of those whose balance is 0 by now. A flow is at rest if it is idle and nothing of it is
open: no run that has not ended, no revoked attempt, no lost one whose account may still be amended. Then nothing can
change its balance but the rounds that pass, so the round in which it reaches 0 is computed, as in `ring`, and nobody
is looked at in vain: O(log n) a newcomer. If nobody may be forgotten the newcomer is refused: debt is never forgotten,
nor is anybody who waits.

Nothing is lost by it: a flow whose balance is 0 differs from a new one only in its place. What it has done goes into
the sums of its ring, so the books still balance. Nothing is gained either, see `State.new_flow`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from streams.core.flows import Flow
    from streams.core.ring import Ring
    from streams.core.state import State

MAX_FORGOTTEN: Final = 8  # for one newcomer: more than 1 only while a smaller limit is being met
_SLACK: Final = 1_024


class Resting:
    """Flows at rest, by when they may be forgotten. Made when it is first needed, dropped when it holds too much.

    Two kinds of heaps: flows whose balance is 0, by `left`; and of each class the others, by the round and place at
    which the cursor will have made it 0 (those whose balance no round changes, members of groups, are in none). An
    entry whose flow is not at rest any more, or again (`left` tells), is skipped when it comes up. The order depends on
    the records alone: the same after a load.
    """

    __slots__ = ("_free", "_limit", "_owing")

    def __init__(self, rings: Collection[Ring]) -> None:
        """Begin with the flows that are at rest now. O(flows x log flows)."""
        self._free: list[tuple[int, Flow]] = []  # `left` is unique, so two flows are never compared
        self._owing: dict[str, tuple[Ring, list[tuple[int, int, int, Flow]]]] = {}
        for ring in rings:
            self._owing[ring.record.class_] = (ring, [])
        self._limit = 2 * sum(len(ring.flows) for ring in rings) + _SLACK
        for ring in rings:
            for flow in ring.flows.values():
                if flow.left:
                    self.put(flow)

    def __len__(self) -> int:
        """Return how many entries it holds, those out of date included."""
        return len(self._free) + sum(len(owing) for _, owing in self._owing.values())

    def waits(self) -> dict[int, int]:
        """Return, by `left`, the round from which on a flow may be forgotten; 0: now. Includes what is out of date."""
        owing = {left: free for _, heap in self._owing.values() for free, _, left, _ in heap}
        return owing | {left: 0 for left, _ in self._free}

    def put(self, flow: Flow) -> bool:
        """Take in a flow that has come to rest; False: make another, this one holds too much that is out of date."""
        balance = flow.ring.deficit_now(flow)
        if not balance:
            heappush(self._free, (flow.left, flow))
        elif flow.rate:
            heappush(self._owing[flow.class_][1], (_free_round(flow, balance), flow.place, flow.left, flow))
        return len(self) <= self._limit

    def take(self) -> Flow | None:
        """Take out the flow that has been at rest the longest of those whose balance is 0; None: there is none."""
        for ring, owing in self._owing.values():
            passed = (ring.record.round, ring.record.cursor)
            while owing and owing[0][:2] <= passed:
                _, _, left, flow = heappop(owing)
                if flow.left == left:
                    heappush(self._free, (left, flow))
        free = self._free
        while free:
            left, flow = heappop(free)
            if flow.left == left:
                return flow
        return None


def _free_round(flow: Flow, balance: int) -> int:
    """Return the round in which the balance of a flow at rest is 0 once the cursor has passed its place."""
    return flow.ring.passed(flow) - (-abs(balance) // flow.rate)


def make_room(state: State) -> bool:
    """Make room for one more flow, and tell whether there is any."""
    limit = state.policy.policy.memory.flows
    if state.known_flows < limit:
        return True
    if state.resting is None:
        state.resting = Resting(state.rings.values())
    forgotten = 0
    while forgotten < MAX_FORGOTTEN and state.known_flows >= limit and (flow := state.resting.take()) is not None:
        _forget(state, flow)
        forgotten += 1
    return forgotten > 0  # above a smaller limit the number still falls, or stays


def _forget(state: State, flow: Flow) -> None:
    ring, tenant, changed = flow.ring, flow.parent, state.out.changed
    assert ring.deficit_now(flow) == 0, "a debt is never forgotten"
    flow.left = 0
    ring.forget(flow)
    state.known_flows -= 1
    past = ring.record
    past.past_charged += flow.charged  # == actual: no account is open
    past.past_dispatched += flow.dispatched
    past.past_ended += flow.ended
    changed[ring.key] = past
    changed[flow.key] = None
    tenant.flows = [each for each in tenant.flows if each is not flow]
    if not tenant.flows:
        del state.tenants[tenant.name]
