"""The gap between the flows of a class, measured beside the deficits and held against the bound of the package.

Every flow that has work is owed something: what its rounds have given it since it last had nothing to do, less what
it has been charged since then (`owed`, in tokens):

    owed  =  base + rate x (rounds - since) - charged

`base` and `since` are such that this is the flow's balance when it becomes active, and stays what it is when its rate
changes. It earns only while it is ACTIVE; while it is BLOCKED rounds don't count. `owed` says the same as the deficit,
but it is worked out from two sums and not kept by adding up visits: a flow that is given a quantum twice, is served
without being charged or is passed over has an `owed` that runs away, whatever its deficit says.

Bound
-----
With the symbols of the package docstring, for every flow i with work, at every moment:

    -(E + K_i D)  <=  owed_i  <=  Q f_i + E + K_i D

Above: a visit ends when the deficit doesn't cover the head, which costs at most E; the next one adds one quantum,
and attempts in flight when the last one ended may give back what they were charged too much. Below: a dispatch
leaves the deficit at 0 or more, and attempts in flight may then turn out dearer. So for two flows, per weight,

    |owed_i / f_i - owed_j / f_j|  <=  Q + (E + K_i D) / f_i + (E + K_j D) / f_j

which is the stated bound, with charges for costs. The figures are those met since the class was last at rest:

E   largest estimate a flow has waited with at its head, or balance it came in with (`RingRecord.max_estimate`)
D   most that an attempt cost beyond its estimate, plus most that was given back (`max_under`, `max_over`)
K   most attempts of its tenant in flight, plus late reports, since it last had nothing to do (`FlowRecord.peak`)
f   rate / Q: the weight, or the flow's part of its group's

Integers only. A gap is rounded down and its bound up, so rounding never raises a false alarm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streams.core.records import ACTIVE, BLOCKED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.core.flows import Flow
    from streams.core.records import RingRecord


class Gap(NamedTuple):
    """Of the active flow that is owed the most and the one that is owed the least, per weight. Tokens per weight."""

    gap: int
    bound: int


def begin(flow: Flow) -> None:
    """Measure a flow from here: it was idle, all rounds are booked, and now it has work."""
    record, deficit = flow.ring.record, flow.deficit
    flow.base, flow.since = flow.charged + deficit, flow.accrued
    flow.peak = max(1, flow.parent.flight_runs)
    # What it is owed to begin with may stem from errors that the figures don't know any more.
    record.max_estimate = max(record.max_estimate, deficit, -deficit)


def pause(flow: Flow) -> None:
    """Stop counting rounds: a flow, all of whose rounds are booked, is about to be blocked."""
    flow.base += flow.rate * (flow.accrued - flow.since)


def resume(flow: Flow) -> None:
    """Count rounds from here on: a blocked flow is about to become active, with `accrued` up to date."""
    flow.since = flow.accrued


def earn_nothing(flow: Flow) -> None:
    """Take in that a visit has given the flow no quantum, since it had one left."""
    flow.base -= flow.rate


def earn_extra(flow: Flow) -> None:
    """Take in that a visit has given a flow of a group `extra` tokens beyond its rate, or less: see `groups`."""
    flow.base += flow.extra


def rerate(flow: Flow, rate: int) -> None:
    """Take in that a flow with work, all of whose rounds are booked, is about to earn `rate`: what it is owed stays.

    What a visit under way, or broken off by a cap, holds of a larger quantum is counted like a head of that cost; so
    is what the visit to come will give beyond the rate (`extra`, to be set before).
    """
    record, extra = flow.ring.record, flow.extra
    record.max_estimate = max(record.max_estimate, owed(flow) + (extra if extra > 0 else -rate))
    if flow.state is ACTIVE:
        flow.base += flow.rate * (flow.accrued - flow.since)
        flow.since = flow.accrued


def note_error(record: RingRecord, first: int, charged: int, actual: int) -> bool:
    """Take in how far an attempt's cost was off; tell whether the figures have changed.

    `first` was charged at its dispatch, `charged` so far, and it cost `actual` (or has owned up to that much).
    """
    under, over = actual - first, charged - actual
    if under <= record.max_under and over <= record.max_over:
        return False
    record.max_under = max(record.max_under, under)
    record.max_over = max(record.max_over, over)
    return True


def reset(record: RingRecord) -> None:
    """Forget the figures: nobody in the class has work, so nothing is measured by them."""
    record.max_estimate = record.max_under = record.max_over = 0


def owed(flow: Flow) -> int:
    """Return what a flow with work is owed now, tokens; negative: it is ahead of its rounds."""
    if flow.state is BLOCKED:
        return flow.base - flow.charged
    rounds = max(flow.ring.passed(flow), flow.accrued)  # a new flow counts as visited in the round it came in
    if flow.half_visit and rounds > flow.accrued:
        rounds -= 1  # the first visit since it was blocked gives nothing, and that isn't booked yet
    extra = flow.extra if rounds > flow.accrued else 0
    return flow.base + flow.rate * (rounds - flow.since) + extra - flow.charged


def allowance(flow: Flow) -> int:
    """Return E + K D, tokens: `owed` is never below minus that, nor above that and one quantum."""
    record = flow.ring.record
    return record.max_estimate + flow.peak * (record.max_under + record.max_over)


def widest(flows: Iterable[Flow], quantum: int) -> Gap:
    """Return gap and bound of the two active flows of a class that are furthest apart; zeros if there aren't two.

    Postconditions: 0 <= gap <= bound, unless the core is broken.
    """
    lags = [(lag(flow, quantum), flow.place, flow) for flow in flows if flow.state is ACTIVE]
    if len(lags) < 2:  # noqa: PLR2004 - a pair
        return Gap(0, 0)
    most, least = max(lags)[2], min(lags)[2]  # places are unique, so two flows are never compared
    gap = owed(most) * quantum // most.rate + -owed(least) * quantum // least.rate
    slack = sum(-(-allowance(flow) * quantum // flow.rate) for flow in (most, least))
    return Gap(max(0, gap), quantum + slack)


def lag(flow: Flow, quantum: int) -> int:
    """Return what an active flow is owed per weight, rounded down."""
    return owed(flow) * quantum // flow.rate
