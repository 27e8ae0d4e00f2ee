"""Accounts: every run ends once, every attempt is settled once, every token charged was spent or is in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from streams.core import counts
from streams.core.inputs import FAILED, SUCCEEDED
from streams.core.outcomes import LOST
from streams.core.records import FlightRecord, FlowRecord, RingRecord, RunRecord
from tests.integration.arithmetic.evidence import Evidence


def runs_conserved(evidence: Evidence) -> Iterator[str]:
    """Every accepted run has ended, once, or is still there."""
    for shard, entries in evidence.journal.items():
        counted: Counter[str] = Counter()
        for entry in entries:
            counted.update(entry.counts)
        ended, left = (
            {name: counted[name] for name in counts.ENDS if counted[name]},
            len(evidence.rows_of(shard, RunRecord)),
        )
        if counted[counts.ACCEPTED] != sum(ended.values()) + left:
            yield f"shard {shard}: {counted[counts.ACCEPTED]} runs were accepted, {left} are left, and ended {ended}"


def settled_once(evidence: Evidence) -> Iterator[str]:
    """An attempt is settled once, at what it was charged; one given up as lost may be amended once."""
    estimates = {(each.tenant, each.run_id, each.attempt): each.estimate for each in evidence.dispatches}
    for attempt, given in evidence.settlements.items():
        first, *others = (each for _, each in given)
        amended = len(others) == 1 and first.outcome == LOST and others[0].outcome in {SUCCEEDED, FAILED}
        if others and not amended:
            yield f"{attempt} was settled {len(given)} times: {[each.outcome for _, each in given]}"
        if amended and others[0].estimate != first.actual:
            yield f"{attempt} was given up at {first.actual} tokens and amended from {others[0].estimate}"
        if attempt not in estimates:
            yield f"{attempt} was settled and never dispatched"
        elif first.estimate != estimates[attempt]:
            yield f"{attempt} was charged {estimates[attempt]} tokens and settled from {first.estimate}"


def settled_or_in_flight(evidence: Evidence) -> Iterator[str]:
    """A dispatched attempt holds its place until it is settled, and no longer."""
    in_flight = {
        (row.tenant, row.run_id, row.attempt)
        for shard in evidence.shards
        for row in evidence.rows_of(shard, FlightRecord)
    }
    for attempt in in_flight & evidence.settlements.keys():
        yield f"{attempt} was settled and is in flight"
    for each in evidence.dispatches:
        attempt = (each.tenant, each.run_id, each.attempt)
        if attempt not in in_flight and attempt not in evidence.settlements:
            yield f"{attempt} was dispatched, is not in flight, and was never settled"


def tokens_conserved(evidence: Evidence) -> Iterator[str]:
    """What a flow was charged is what its attempts spent plus what is in flight; and the journal says the same."""
    spent, dispatched = _spent(evidence), Counter((each.shard, each.class_) for each in evidence.dispatches)
    for shard in evidence.shards:
        flows, rings = evidence.rows_of(shard, FlowRecord), evidence.rows_of(shard, RingRecord)
        open_: Counter[tuple[str, str]] = Counter()
        for flight in evidence.rows_of(shard, FlightRecord):
            open_[flight.class_, flight.tenant] += flight.charged
        for row in flows:
            charges = open_[row.class_, row.tenant]
            if row.charged != row.actual + charges:
                sums = f"spent {row.actual} and has {charges} in flight"
                yield f"shard {shard}: {row.tenant} was charged {row.charged} tokens, {sums}"
        for class_ in {row.class_ for row in flows} | {row.class_ for row in rings}:
            own = [row for row in flows if row.class_ == class_]
            past = [row for row in rings if row.class_ == class_]  # of flows that were forgotten
            where, pair = f"shard {shard}, class {class_}", (shard, class_)
            actual = sum(row.actual for row in own) + sum(row.past_charged for row in past)
            if actual != spent[pair]:
                yield f"{where}: {spent[pair]} tokens were settled in the journal, {actual} stand in the accounts"
            times = sum(row.dispatched for row in own) + sum(row.past_dispatched for row in past)
            if times != dispatched[pair]:
                yield f"{where}: {dispatched[pair]} attempts were dispatched, {times} stand in the accounts"


def nothing_left(evidence: Evidence) -> Iterator[str]:
    """Once all is at rest, nothing is queued or in flight."""
    for shard in evidence.shards:
        for flight in evidence.rows_of(shard, FlightRecord):
            yield f"shard {shard}: {flight.tenant}/{flight.run_id} attempt {flight.attempt} is still in flight"
        for run in evidence.rows_of(shard, RunRecord):
            yield f"shard {shard}: {run.tenant}/{run.run_id} still has a row"


def _spent(evidence: Evidence) -> Counter[tuple[int, str]]:
    """Tokens settled by (shard, class): of an attempt that was amended, the last word counts."""
    classes = {(each.tenant, each.run_id, each.attempt): (each.shard, each.class_) for each in evidence.dispatches}
    spent: Counter[tuple[int, str]] = Counter()
    for attempt, given in evidence.settlements.items():
        if attempt in classes:  # else `settled_once` says so
            spent[classes[attempt]] += given[-1][1].actual
    return spent
