"""What of a record is played again: who asked for what, when, and what it cost in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.errors import FairstreamError
from streams.simulate.deficit_round_robin import Stated
from streams.simulate.pool import Served
from streams.simulate.waits import percentile
from streams.simulate.workload import Arrival

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streams.audit.what_if.reading import Record
    from streams.audit.what_if.runs import RecordedRun
    from streams.core.policy import Policy

# Why a run is left out, beside its state at the end of the record (see `runs`).
OUTSIDE: Final = "outside"  # of the interval asked for
NO_REQUEST: Final = "no_request"  # its request is not in the topics: it is older, or came from another deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The runs that are played, as they happened. Moments are ms from `begin_ms`, the first arrival's."""

    prefix: str
    shards: int
    begin_ms: int  # since the epoch
    arrivals: tuple[Arrival, ...]  # in the order of their moments
    served: tuple[Served, ...]  # as it happened, in the order of the decisions
    policies: tuple[Stated, ...]  # as they followed each other, the first at 0
    handover_ms: int  # from the dispatch to the start: half of the runs took no longer
    states: Mapping[str, int]  # of the runs that are played, at the end of the record
    attempts: int  # of the same; one run has all of its own, one after the other
    left_out: Mapping[str, Mapping[str, int]]  # tenant -> why -> runs
    unreadable: int  # requests that no shard could read: whose they were is not known
    steps_cut: int  # steps of which inputs are no longer in the topics


def make_traffic(record: Record, since_ms: int | None = None, until_ms: int | None = None) -> Traffic:
    """Return the runs that arrived in since_ms <= t < until_ms (ms since the epoch) and used a slot.

    A run that used none has no cost that anybody knows; it is counted in `left_out`. Raises `FairstreamError` if
    nothing is left.
    """
    left_out: dict[str, Counter[str]] = {}
    chosen: list[RecordedRun] = []
    for tenant, runs in record.strangers.items():
        left_out.setdefault(tenant, Counter())[NO_REQUEST] += runs
    for run in record.runs:
        why = _why_left_out(run, since_ms, until_ms)
        if why is None:
            chosen.append(run)
        else:
            left_out.setdefault(run.submit.tenant, Counter())[why] += 1
    if not chosen:
        raise FairstreamError("there is no run to play: of none in this interval has an attempt ended")
    chosen.sort(key=lambda run: (run.at_ms, run.shard, run.submit.position))
    begin_ms = chosen[0].at_ms
    pairs = [(_arrival(run, begin_ms), run) for run in chosen]
    handovers = sorted(run.ended[0].begun_ms - run.ended[0].decided_ms for run in chosen)
    decided = sorted(pairs, key=lambda pair: pair[1].ended[0].seq)
    if record.shards > 1:  # of several shards the numbers say nothing about each other
        decided.sort(key=lambda pair: pair[1].ended[0].decided_ms)
    return Traffic(
        prefix=record.prefix,
        shards=record.shards,
        begin_ms=begin_ms,
        arrivals=tuple(arrival for arrival, _ in pairs),
        served=tuple(_served(arrival, run, begin_ms) for arrival, run in decided),
        policies=_from_begin(record.policies, begin_ms),
        handover_ms=percentile(handovers, 50),
        states=Counter(run.state for run in chosen),
        attempts=sum(len(run.ended) for run in chosen),
        left_out=left_out,
        unreadable=record.unreadable,
        steps_cut=record.steps_cut,
    )


def _why_left_out(run: RecordedRun, since_ms: int | None, until_ms: int | None) -> str | None:
    if (since_ms is not None and run.at_ms < since_ms) or (until_ms is not None and run.at_ms >= until_ms):
        return OUTSIDE
    return None if run.ended else run.state


def _arrival(run: RecordedRun, begin_ms: int) -> Arrival:
    """Return the run as the model has it: one attempt, that costs and lasts what all of them did."""
    given, ended = run.submit, run.ended
    return Arrival(
        run.at_ms - begin_ms,
        given.tenant,
        given.run_id,
        given.workflow,
        max(1, sum(attempt.tokens for attempt in ended)),
        max(1, sum(attempt.ended_ms - attempt.begun_ms for attempt in ended)),
        given.estimate,
        given.max_tokens,
        given.class_,
        _since(given.not_before_ms, begin_ms),
        _since(given.deadline_ms, begin_ms),
        run.body_bytes,
    )


def _served(arrival: Arrival, run: RecordedRun, begin_ms: int) -> Served:
    """Return how the run was served: it waited until a worker first said that it had begun."""
    ended = run.ended
    begun = next((attempt for attempt in ended if attempt.started_ms is not None), ended[-1])
    last_ms = max(attempt.ended_ms for attempt in ended)
    return Served(
        arrival, ended[0].estimate, ended[0].decided_ms - begin_ms, begun.begun_ms - begin_ms, last_ms - begin_ms
    )


def _from_begin(policies: Sequence[tuple[int, Policy]], begin_ms: int) -> tuple[Stated, ...]:
    """Return the policies from that moment on. The first one is taken back to it: no step is older."""
    held = sum(at_ms <= begin_ms for at_ms, _ in policies) or 1
    changes = (Stated(at_ms - begin_ms, policy) for at_ms, policy in policies[held:])
    return (Stated(0, policies[held - 1][1]), *changes)


def _since(at_ms: int | None, begin_ms: int) -> int | None:
    return None if at_ms is None else at_ms - begin_ms
