"""Records as a deployment would have written them, made by playing a story in the simulated pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streams.core.effects import Settlement
from streams.core.inputs import STARTED, SUCCEEDED
from streams.demo.deployment import REHEARSAL
from streams.demo.records import Account, Filed, Handed, Records, Report
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import Served, play
from streams.simulate.scheduler import Scheduler
from streams.simulate.story import Story

BEGIN_MS: Final = 1_700_000_000_000


def record(story: Story, scheduler: Scheduler | None = None, *, handover_ms: int = 30) -> Records:
    """Return what the topics hold after a story that was played by `scheduler`; without one, by ours."""
    playing = scheduler or DeficitRoundRobin(story.policy, slots=story.slots)
    served = play(story.arrivals, playing, slots=story.slots, handover_ms=handover_ms)
    records = Records(steps=len(served))
    _rehearse(records)
    for arrival in story.arrivals:
        records.filed.append(Filed(arrival.tenant, arrival.run_id, BEGIN_MS + arrival.at_ms))
    first = len(records.handed) + 1
    for seq, run in enumerate(served, start=first):
        _append(records, seq, run)
    return records


def accounts(story: Story, records: Records) -> dict[str, Account]:
    """Return the shard's rows at the end: what was settled."""
    spent = dict.fromkeys(story.tenants, 0)
    for settlement in records.settled:
        if settlement.tenant in spent:
            spent[settlement.tenant] += settlement.actual
    return {tenant: Account(tokens, tokens) for tenant, tokens in spent.items()}


def _rehearse(records: Records) -> None:
    """One run that is in no story, as in a real deployment."""
    records.filed.append(Filed(REHEARSAL, "run-0", BEGIN_MS - 2_000))
    records.handed.append(Handed(1, REHEARSAL, "run-0", 1, 1_000, BEGIN_MS - 1_900))
    records.reports += [
        Report(REHEARSAL, "run-0", 1, STARTED, None, BEGIN_MS - 1_800),
        Report(REHEARSAL, "run-0", 1, SUCCEEDED, 1, BEGIN_MS - 1_700),
    ]
    records.settled.append(Settlement(REHEARSAL, "run-0", 1, SUCCEEDED, 1_000, 1, reported=True))


def _append(records: Records, seq: int, run: Served) -> None:
    tenant, run_id, tokens = run.arrival.tenant, run.arrival.run_id, run.arrival.tokens
    records.handed.append(Handed(seq, tenant, run_id, 1, run.charge, BEGIN_MS + run.decided_ms))
    records.reports += [
        Report(tenant, run_id, 1, STARTED, None, BEGIN_MS + run.started_ms),
        Report(tenant, run_id, 1, SUCCEEDED, tokens, BEGIN_MS + run.ended_ms),
    ]
    records.settled.append(Settlement(tenant, run_id, 1, SUCCEEDED, run.charge, tokens, reported=True))
    records.succeeded += 1


def without_report(records: Records, tenant: str) -> Sequence[Report]:
    """Return the reports but for the last success of a tenant."""
    last = max(
        index for index, report in enumerate(records.reports) if report.tenant == tenant and report.status == SUCCEEDED
    )
    return [report for index, report in enumerate(records.reports) if index != last]
