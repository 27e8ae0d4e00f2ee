"""A new policy takes hold: at once for what comes in, at the next visit for what is queued."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import gap
from streams.core.records import POLICY, FlowState, PolicyRecord
from streams.core.removal import find_removed

if TYPE_CHECKING:
    from streams.core.flows import Tenant
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
        state.turns.succeed(before, state.out.changed)
    for tenant in state.tenants.values():
        _bind(state, tenant)
    find_removed(state)


def _bind(state: State, tenant: Tenant) -> None:
    policy = state.policy.policy
    tenant.rules = policy.rules_for(tenant.name)
    rate = policy.quantum * tenant.rules.weight
    for flow in tenant.flows:
        if flow.rate == rate:
            continue
        if flow.state is not FlowState.IDLE or flow.deficit != 0:  # else there is nothing to book
            flow.ring.catch_up(flow)
            state.out.changed[flow.key] = flow
        if flow.state is not FlowState.IDLE:
            gap.rerate(flow, rate)
            state.out.changed[flow.ring.key] = flow.ring.record
        flow.rate = rate
    state.refresh(tenant)
