"""From records to figures. Pure: the same records give the same figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from streams.core.inputs import STARTED, SUCCEEDED
from streams.demo.records import Account, Records
from streams.errors import FairstreamError
from streams.simulate.backlog import Contest, contest_in, find_contest
from streams.simulate.baselines import Fifo
from streams.simulate.bound import Gap, gaps
from streams.simulate.pool import Served, play
from streams.simulate.report import Share, jain, makespan_ms, shares
from streams.simulate.story import Story
from streams.simulate.waits import Waits, waits
from streams.simulate.workload import Arrival, tokens_by_tenant

RunKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """One tenant's tokens, counted in five independent ways. Conservation: all are equal."""

    filed: int  # what the story says its runs cost
    reported: int  # what the fleet said they cost (completions topic)
    settled: int  # charged at dispatch and corrected at settlement (dispatch topic and journal)
    charged: int  # by the shard's row
    actual: int  # by the shard's row

    @property
    def balanced(self) -> bool:
        return self.filed == self.reported == self.settled == self.charged == self.actual


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that is said of a story. Tokens and ms; moments from the beginning of the story."""

    story: Story
    waits: Mapping[str, Waits]  # as it ran
    fifo_waits: Mapping[str, Waits]  # simulated, of runs that lasted as long as they did
    makespan_ms: int  # from the first request to the last end, as it ran
    fifo_makespan_ms: int  # simulated
    tokens: int  # of all runs
    contest: Contest | None
    shares: Mapping[str, Share]  # of the contest's interval
    fifo_shares: Mapping[str, Share]  # of the same interval, simulated
    gaps: Sequence[Gap]
    jain: Fraction  # Jain's index of what the contest's tenants got for their weight; 1: all the same
    ledgers: Mapping[str, Ledger]
    attempts: int  # dispatches of the story's runs
    gapless: bool  # the sequence numbers of all dispatches are 1, 2, 3, ...
    steps: int


def measure(story: Story, records: Records, accounts: Mapping[str, Account], begin_ms: int) -> Figures:
    """Work out the figures of a story that was played to its end. Raises `FairstreamError` if a run is missing."""
    filed = as_filed(story, records, begin_ms)
    served = as_served(filed, records, begin_ms)
    lasted = {(run.arrival.tenant, run.arrival.run_id): run.arrival for run in served}
    arrivals = [lasted[arrival.tenant, arrival.run_id] for arrival in filed]
    fifo = play(arrivals, Fifo(), slots=story.slots)
    weights = story.weights
    contest = find_contest(served)
    parts = shares(served, contest, weights) if contest else {}
    fifo_parts = shares(fifo, contest_in(fifo, contest.interval), weights) if contest else {}
    keys = {(arrival.tenant, arrival.run_id) for arrival in arrivals}
    return Figures(
        story=story,
        waits=waits(served),
        fifo_waits=waits(fifo),
        makespan_ms=makespan_ms(served),
        fifo_makespan_ms=makespan_ms(fifo),
        tokens=sum(arrival.tokens for arrival in arrivals),
        contest=contest,
        shares=parts,
        fifo_shares=fifo_parts,
        gaps=gaps(served, contest, weights, story.policy.quantum) if contest else (),
        jain=jain([Fraction(parts[name].observed, weights[name]) for name in contest.tenants] if contest else []),
        ledgers=_ledgers(story, records, accounts),
        attempts=sum((handed.tenant, handed.run_id) in keys for handed in records.handed),
        gapless=sorted(handed.seq for handed in records.handed) == list(range(1, len(records.handed) + 1)),
        steps=records.steps,
    )


def as_filed(story: Story, records: Records, begin_ms: int) -> tuple[Arrival, ...]:
    """Return the story's arrivals at the moments at which they really were in the topic, in its order.

    A FIFO queue would have had them in this order, at these moments.
    """
    planned = {(arrival.tenant, arrival.run_id): arrival for arrival in story.arrivals}
    filed: list[Arrival] = []
    for request in records.filed:
        arrival = planned.pop((request.tenant, request.run_id), None)
        if arrival is not None:
            at_ms = max(request.at_ms - begin_ms, filed[-1].at_ms if filed else 0)
            filed.append(arrival._replace(at_ms=at_ms))
    _require_all(planned, "filed")
    return tuple(filed)


def as_served(arrivals: Iterable[Arrival], records: Records, begin_ms: int) -> tuple[Served, ...]:
    """Return how each run was served, in the order of the decisions: the attempt that succeeded.

    Each has lasted as long as its worker took, by the reports' timestamps, whatever the story has planned.
    """
    done = {(report.tenant, report.run_id): report for report in records.reports if report.status == SUCCEEDED}
    started = {(r.tenant, r.run_id, r.attempt): r.at_ms for r in records.reports if r.status == STARTED}
    handed = {(each.tenant, each.run_id, each.attempt): each for each in records.handed}
    served: list[tuple[int, Served]] = []
    missing: dict[RunKey, Arrival] = {}
    for arrival in arrivals:
        end = done.get((arrival.tenant, arrival.run_id))
        if end is None or (end.tenant, end.run_id, end.attempt) not in started:
            missing[arrival.tenant, arrival.run_id] = arrival
            continue
        attempt = (end.tenant, end.run_id, end.attempt)
        given = handed[attempt]
        begun, ended = started[attempt], end.at_ms
        lasted = arrival._replace(duration_ms=max(1, ended - begun))
        served.append(
            (given.seq, Served(lasted, given.estimate, given.at_ms - begin_ms, begun - begin_ms, ended - begin_ms))
        )
    _require_all(missing, "done")
    return tuple(run for _, run in sorted(served, key=lambda pair: pair[0]))


def _ledgers(story: Story, records: Records, accounts: Mapping[str, Account]) -> dict[str, Ledger]:
    filed = tokens_by_tenant(story.arrivals)
    reported, settled = dict.fromkeys(filed, 0), dict.fromkeys(filed, 0)
    for report in records.reports:
        if report.status == SUCCEEDED and report.tenant in reported:
            reported[report.tenant] += report.tokens or 0
    for handed in records.handed:
        if handed.tenant in settled:
            settled[handed.tenant] += handed.estimate
    for settlement in records.settled:
        if settlement.tenant in settled:
            settled[settlement.tenant] += settlement.actual - settlement.estimate
    nothing = Account(0, 0)
    return {
        tenant: Ledger(
            filed=filed[tenant],
            reported=reported[tenant],
            settled=settled[tenant],
            charged=accounts.get(tenant, nothing).charged,
            actual=accounts.get(tenant, nothing).actual,
        )
        for tenant in filed
    }


def _require_all(missing: Mapping[RunKey, Arrival], what: str) -> None:
    if missing:
        tenant, run_id = next(iter(missing))
        raise FairstreamError(f"{len(missing)} runs were never {what} by what the topics say, one: {tenant}/{run_id}")
