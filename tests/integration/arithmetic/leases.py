"""Leases: an attempt is left alone until its lease has run out, and the next one starts only when it is settled.

The lease clock stands still while a shard has no owner: the time between the last step of a reign and the first of the
next is an outage, in which no worker could be heard.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from streams.core.inputs import HEARTBEAT, STARTED, SUCCEEDED
from streams.core.outcomes import LOST
from streams.errors import BadRecord
from streams.wire import decode_completion, partition_for
from tests.integration.arithmetic.evidence import Attempt, Evidence
from tests.integration.arithmetic.inputs import Run


def one_attempt_at_a_time(evidence: Evidence) -> Iterator[str]:
    """Attempt n + 1 is dispatched only after attempt n was settled, and no attempt after one has succeeded."""
    successes: dict[Run, int] = {}
    for (tenant, run_id, _), given in evidence.settlements.items():
        for entry, settled in given:
            if settled.outcome == SUCCEEDED:
                successes[tenant, run_id] = min(entry.step, successes.get((tenant, run_id), entry.step))
    for each in evidence.dispatches:
        name, before = f"{each.tenant}/{each.run_id} attempt {each.attempt}", each.attempt - 1
        given = evidence.settlements.get((each.tenant, each.run_id, before), [])
        if before and (not given or given[0][0].step > each.step):
            yield f"{name} was dispatched before attempt {before} was settled"
        success = successes.get((each.tenant, each.run_id))
        if success is not None and success <= each.step:
            yield f"{name} was dispatched in step {each.step}, and the run had succeeded in step {success}"


def leases_honoured(evidence: Evidence) -> Iterator[str]:
    """An attempt is given up no sooner than its lease allows, counted from the last report on it that was applied."""
    clocks = {shard: _lease_clock(evidence, shard) for shard in evidence.shards}
    heard = _last_reports(evidence)
    for each in evidence.dispatches:
        attempt = (each.tenant, each.run_id, each.attempt)
        given = evidence.settlements.get(attempt)
        if given is None or given[0][1].outcome != LOST:
            continue
        clock, lost_in = clocks[each.shard], given[0][0].step
        steps = [each.step, *(step for step in heard.get(attempt, ()) if step <= lost_in)]
        due = max((clock[step] for step in steps if step in clock), default=clock[lost_in]) + each.lease_ms
        if clock[lost_in] < due:
            yield f"{attempt} was given up {due - clock[lost_in]} ms before its lease of {each.lease_ms} ms ran out"


def _lease_clock(evidence: Evidence, shard: int) -> dict[int, int]:
    """The time on the lease clock at each step, in ms."""
    times: dict[int, int] = {}
    outage_ms = last_ms = 0
    for entry in evidence.journal[shard]:
        if entry.takeover and times:
            outage_ms += entry.now_ms - last_ms
        last_ms = entry.now_ms
        times[entry.step] = entry.now_ms - outage_ms
    return times


def _last_reports(evidence: Evidence) -> dict[Attempt, list[int]]:
    """The steps in which a report applied that prolongs the lease of its attempt."""
    ends: dict[int, list[tuple[int, int]]] = {
        shard: [(each.last, entry.step) for entry in entries for each in entry.inputs if each.topic == "completions"]
        for shard, entries in evidence.journal.items()
    }
    found: dict[Attempt, list[int]] = {}
    for seen in evidence.completions:
        if not seen.readable:
            continue
        try:
            report = decode_completion(seen.key, seen.value, seen.offset)
        except BadRecord:
            continue
        if partition_for(report.tenant, len(evidence.shards)) != seen.partition:
            continue  # it was forwarded, and counts where it went
        index = bisect_left(ends[seen.partition], (seen.offset, 0))
        if report.status in {STARTED, HEARTBEAT} and index < len(ends[seen.partition]):
            attempt = (report.tenant, report.run_id, report.attempt)
            found.setdefault(attempt, []).append(ends[seen.partition][index][1])
    return found
