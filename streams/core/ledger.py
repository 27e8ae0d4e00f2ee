"""The account of a flow: charged at dispatch, settled when the attempt ends. Every token passes through here.

The deficit is signed and is never floored, clamped or reset while it is negative: forgiven debt is free
service (a tenant that bursts with low estimates and goes quiet until the bills are in would get several times
its share). Conservation: `charged == actual + what its attempts in flight are charged`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams.core.records import FlightRecord, FlowRecord


def charge(flow: FlowRecord, tokens: int) -> None:
    """Charge the estimate of an attempt that starts."""
    flow.deficit -= tokens
    flow.charged += tokens


def own_up(flow: FlowRecord, flight: FlightRecord, tokens: int) -> int:
    """Book what a heartbeat says was spent so far, and charge what exceeds the charge; return that excess.

    Reports may come out of order: a smaller number than before changes nothing.
    """
    if tokens <= flight.reported:
        return 0
    flight.reported = tokens
    excess = tokens - flight.charged
    if excess <= 0:
        return 0
    flight.charged = tokens
    charge(flow, excess)
    return excess


def settle(flow: FlowRecord, charged: int, actual: int) -> None:
    """Close the account of an attempt that was charged `charged` and cost `actual`. Once per attempt."""
    difference = actual - charged
    flow.deficit -= difference
    flow.charged += difference
    flow.actual += actual


def amend(flow: FlowRecord, before: int, actual: int) -> None:
    """Correct an account that was closed at `before`, when the attempt turns out to have cost `actual`."""
    difference = actual - before
    flow.deficit -= difference
    flow.charged += difference
    flow.actual += difference


def fade(balance: int, tokens: int) -> int:
    """Move a balance towards zero by `tokens`, not past it: what rounds do to a flow that has nothing queued.

    Debt is repaid by the rounds the flow would have been visited in; credit from a refund fades at the same pace.
    """
    if balance < 0:
        return min(0, balance + tokens)
    return max(0, balance - tokens)
