"""What became of a request: refused, or a life with waits and attempts. Built step by step by `watching`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from streams.audit.explain import parts
from streams.audit.explain.curve import Curve, Slices
from streams.audit.explain.meanwhile import Meanwhile, Served
from streams.audit.explain.requests import Asked
from streams.core.effects import Rejection
from streams.core.inputs import RETURNED
from streams.core.outcomes import LOST
from streams.core.policy import TenantRules
from streams.core.run_view import AheadView, CostView
from streams.core.snapshot import ShardSnapshot

CANCELLED = "cancelled"


class Moment(NamedTuple):
    """A step of the shard, and its time."""

    step: int
    at_ms: int


class Report(NamedTuple):
    """What a worker said of an attempt, and when: the record's time, held within the steps it lies between."""

    at_ms: int
    status: str
    tokens: int | None
    error: str | None
    worker: str | None


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One dispatch of the run."""

    number: int
    dispatched: Moment
    seq: int
    round: int
    estimate: int  # tokens
    deficit_before: int  # tokens of its flow, just before the charge
    waited: dict[str, int]  # part -> ms, since the run came or the last attempt ended
    waited_last: str  # the part that its dispatch ended; "": it came back, and went, by one and the same step
    reports: list[Report] = field(default_factory=list)
    took: dict[str, int] = field(default_factory=dict)  # part -> ms, from the dispatch until it ended, or its run did
    ended: Moment | None = None  # its account was closed
    outcome: str | None = None  # as in a settlement; None: in flight
    actual: int | None = None  # tokens
    reported: bool = False  # a worker said what it has cost
    amended: int | None = None  # tokens: it had been given up as lost, and was heard of after all
    revoked: str | None = None  # why its run ended while it was in flight

    def close(self, moment: Moment, outcome: str) -> None:
        """End it. Its time is divided, unless that was done when its run ended."""
        self.ended, self.outcome = moment, outcome
        if not self.took:
            self.took = self._divided(moment.at_ms)

    def cut(self, at_ms: int) -> None:
        """Divide its time up to a moment at which its run ended, or the record does."""
        if not self.took:
            self.took = self._divided(at_ms)

    def _divided(self, end_ms: int) -> dict[str, int]:
        """Divide the time from its dispatch to `end_ms`, see `parts`."""
        begin_ms, over = self.dispatched.at_ms, self.outcome not in {None, LOST}
        if not self.reports:
            return {parts.UNHEARD if self.outcome is not None else parts.HANDOVER: end_ms - begin_ms}
        first_ms, last_ms = self.reports[0].at_ms, self.reports[-1].at_ms
        if over and len(self.reports) == 1:
            first_ms = begin_ms if self.outcome != RETURNED else last_ms
        if self.outcome is None:
            last_ms = end_ms
        rest = parts.SILENT if self.outcome == LOST else parts.SETTLING
        return {parts.HANDOVER: first_ms - begin_ms, parts.RUNNING: last_ms - first_ms, rest: end_ms - last_ms}


class Outage(NamedTuple):
    """A time in which the shard had no owner, as far as it falls into the life."""

    begin_ms: int
    end_ms: int
    epoch: int  # of the owner that ended it


class PolicyApplied(NamedTuple):
    """The rules changed meanwhile."""

    moment: Moment
    version: int
    name: str
    author: str


@dataclass(slots=True, kw_only=True)
class Life:
    """A run that was accepted, from its request to its end, or to the end of the record."""

    asked: Asked
    arrived_ms: int  # the record's time, at most that of the step that took it in
    accepted: Moment
    class_: str
    estimate: int
    cost: CostView  # what the estimate rests on
    rules: TenantRules  # of its tenant, as are the next four when it came
    deficit: int  # of its flow
    round: int
    window_runs: int | None
    window_tokens: int | None
    arrival: ShardSnapshot
    ahead: AheadView | None  # None: it was dispatched by the step that took it in
    attempts: list[Attempt] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # part -> ms: after the last attempt, if none followed
    outages: list[Outage] = field(default_factory=list)
    policies: list[PolicyApplied] = field(default_factory=list)
    curve: Curve = field(default_factory=Curve)
    meanwhile: Meanwhile
    phases: Slices  # ms by part
    departure: ShardSnapshot | None = None  # when it was last dispatched
    ended: Moment | None = None
    end: str | None = None  # succeeded, failed, `CANCELLED`, or a reason of `streams.core.reasons`; None: not yet
    rejection: Rejection | None = None  # if it was rejected after all
    state: str = ""  # at last, if it has not ended: queued, delayed, in_flight, overdue
    ready_ms: int = 0  # at last, if it is delayed: it may not go before
    ahead_at_last: AheadView | None = None  # if it still waits
    seen_ms: int = 0  # the last step of which it is told

    @property
    def divided(self) -> dict[str, int]:
        """Part -> ms, from its arrival to its end or the end of the record."""
        return parts.added(
            *(each.waited for each in self.attempts), *(each.took for each in self.attempts), self.waiting
        )

    @property
    def served(self) -> list[Served]:
        """Who was served while it waited, most tokens first."""
        return self.meanwhile.served(self.arrival, self.departure)


@dataclass(slots=True, kw_only=True)
class Answer:
    """A request, and what the shard said to it."""

    asked: Asked
    moment: Moment | None = None  # None: no step of the record has taken it in
    refusal: Rejection | None = None
    life: Life | None = None  # of the run that it began, if it was accepted
    taken_back: bool = False  # it was accepted, and cancelled by the very step that took it in
