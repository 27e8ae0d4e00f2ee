"""Groups: tenants that share one weight, so that who owns many tenant ids gets no more than who owns one.

Sharing by tenant invites to be many tenants: twenty ids get twenty shares. Tenants that a policy puts into one group
have the group's weight together. Their own weights only divide it, among those of them that are ACTIVE in a class:

    rate_i  =  max(1, Q x G x w_i // W)    Q quantum, G weight of the group, w_i own weight, W sum of w of the ACTIVE

That is one flow of weight G whose quanta go to its parts: the group never earns more than Q x G in a round, however
its members come and go. Two rules see to that:

1. When a member becomes ACTIVE or stops being so, the new rates bind from the next round on. In the round under way
   everybody earns what it would have earned anyway, and who has just come nothing. If they bound at once, members
   that take turns within a round, each alone while the cursor passes its place, would earn all of Q x G each.
   What the visit of the round under way earns beyond the new rate (or less) is `FlowRecord.extra`.
2. Who is not ACTIVE earns nothing: the balance of a member with an empty queue stands still, where that of others
   fades. The active members have all of the group's quantum; if the others' debts faded beside them, members that
   take turns running up debt would be forgiven it. So a debt waits for its debtor. It is at most what its runs in
   flight were wrong by, and repaid at its rate when it has work again.

`max(1, ...)` keeps everybody moving; it lets a group earn more than Q x G if that is less than W, which
`policy_check` refuses. Rounding down costs a group less than one token a member and round.

A change costs O(ACTIVE members x log n), and they are written; policies hold groups to a thousand members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core.records import FlowState

if TYPE_CHECKING:
    from streams.core.flows import Flow
    from streams.core.policy import Policy


class Group:
    """The ACTIVE members of a group in one class."""

    __slots__ = ("active", "earns", "weights")

    def __init__(self, earns: int) -> None:
        """Begin without members. `earns` is Q x G: tokens a round for all of them."""
        self.earns = earns
        self.active: dict[int, Flow] = {}  # by place
        self.weights = 0  # == sum of their own weights

    def enter(self, flow: Flow) -> None:
        """Count a member that has become ACTIVE."""
        self.active[flow.place] = flow
        self.weights += flow.parent.rules.weight

    def leave(self, flow: Flow) -> None:
        """Count a member no more."""
        del self.active[flow.place]
        self.weights -= flow.parent.rules.weight

    def share(self, flow: Flow) -> int:
        """Return what an ACTIVE member earns, tokens a round."""
        return share_of(self.earns, flow.parent.rules.weight, self.weights)


def share_of(earns: int, weight: int, weights: int) -> int:
    """Return what a member of `weight` earns, tokens a round, if all ACTIVE ones weigh `weights` and earn `earns`."""
    return max(1, earns * weight // weights)


def assign(flow: Flow, policy: Policy) -> None:
    """Put a flow into its group, if its tenant's rules name one. Its rate is left as it is: see `rate_of`."""
    flow.group = None
    name = flow.parent.rules.group
    if name is None:
        return
    groups = flow.ring.groups
    group = groups.get(name)
    if group is None:
        group = groups[name] = Group(policy.quantum * policy.groups[name])
    flow.group = group
    if flow.state is FlowState.ACTIVE:
        group.enter(flow)


def rate_of(flow: Flow, quantum: int) -> int:
    """Return what a flow earns, tokens a round, once all members of its group have been assigned to it."""
    if flow.group is None:
        return quantum * flow.parent.rules.weight
    return flow.group.share(flow) if flow.state is FlowState.ACTIVE else 0
