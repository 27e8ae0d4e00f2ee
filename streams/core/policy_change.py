"""A new policy takes hold: at once for what comes in, at the next visit for what is queued."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import gap, groups
from streams.core.records import POLICY, FlowState, PolicyRecord
from streams.core.removal import find_removed

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.inputs import SetPolicy
    from streams.core.state import State


def set_policy(state: State, change: SetPolicy) -> None:
    """Put a policy in force. One at or below the version in force has been applied before and changes nothing.

    Rounds that have passed are booked at the old weights first; the new ones bind from the next visit on, also
    for runs that are queued. Costs O(flows).
    """
    if change.position <= state.policy.version:
        return
    state.policy = PolicyRecord(version=change.position, policy=change.policy)
    state.out.changed[(POLICY,)] = state.policy
    before = state.turns
    state.adopt_policy()
    if state.turns is not None:
        state.turns.take_over(before, state.out.changed)
    for ring in state.rings.values():
        ring.groups.clear()
    for tenant in state.tenants.values():
        tenant.obey(change.policy)
        for flow in tenant.flows:
            groups.assign(flow, change.policy)
    for tenant in state.tenants.values():
        for flow in tenant.flows:
            _bind(state, flow)
    for tenant in state.tenants.values():
        state.refresh(tenant)
    find_removed(state)


def _bind(state: State, flow: Flow) -> None:
    rate = groups.rate_of(flow, state.policy.policy.quantum)
    # What a blocked member of a group holds is measured by all that its group earns, and that may have changed.
    held = flow.group is not None and flow.state is FlowState.BLOCKED
    if flow.rate == rate and not flow.extra and not held:
        return
    if flow.state is not FlowState.IDLE or flow.deficit != 0:  # else there is nothing to book
        flow.ring.catch_up(flow)
        state.out.changed[flow.key] = flow
    if flow.state is not FlowState.IDLE:
        gap.rerate(flow, rate)
        state.out.changed[flow.ring.key] = flow.ring.record
    flow.rate, flow.extra = rate, 0
