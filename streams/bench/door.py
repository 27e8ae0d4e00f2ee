"""The whole door of the core: request, dispatch, completion, with estimate, ledger, lease and row changes. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.core.inputs import SUCCEEDED, Completion, Submit
from streams.core.policy import DEFAULT_CLASS, Limits, Memory, Policy, Window
from streams.core.records import FlowRecord, HistoryRecord, PolicyRecord, RingRecord, ShardRecord
from streams.core.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.core.effects import Dispatch
    from streams.core.inputs import Input
    from streams.core.records import Record

WINDOW: Final = 256  # runs in flight; also the most that one step serves, so that a step is a small transaction
WORKFLOW: Final = "bench"
_COST: Final = 1_000  # tokens
_STEP_MS: Final = 10
_STARTED_MS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorCase:
    """A number of tenants with work, of known tenants without, and a cost in quanta."""

    tenants: int
    idle: int = 0
    cost_in_quanta: int = 1

    @property
    def name(self) -> str:
        """What a person calls it."""
        parts = [f"{self.tenants:,} tenants"]
        if self.idle:
            parts.append(f"{self.idle:,} idle ones")
        if self.cost_in_quanta > 1:
            parts.append(f"a run costs {self.cost_in_quanta:,} quanta")
        return ", ".join(parts)


class Door:
    """A shard with every tenant of a case backlogged, and its window full."""

    def __init__(self, case: DoorCase) -> None:
        """Load the shard and fill it."""
        quantum = max(1, _COST // case.cost_in_quanta)
        self._cost = quantum * case.cost_in_quanta
        self._tenants = [f"tenant-{number}" for number in range(case.tenants)]
        self._made = 0
        self._now_ms = _STARTED_MS
        policy = Policy(
            quantum=quantum,
            window=Window(runs=WINDOW),
            limits=Limits(max_queued_runs=None),
            memory=Memory(flows=2 * (case.idle + case.tenants)),
        )
        self.shard = Shard.load(0, 1, rows_of_idle(case.idle, policy))
        backlog = self.requests(max(2 * case.tenants, 8 * WINDOW))
        self._in_flight = self.shard.step(backlog, self._now_ms).dispatches

    def requests(self, number: int) -> list[Submit]:
        """Return the next requests, from each tenant in turn."""
        first, tenants, cost = self._made, self._tenants, self._cost
        self._made += number
        return [
            Submit(at, tenants[at % len(tenants)], f"run-{at}", WORKFLOW, None, cost)
            for at in range(first, first + number)
        ]

    def queue(self, number: int, payload: int) -> None:
        """Queue more runs, whose workflow and payload are objects of their own, as if read from messages."""
        word = WORKFLOW.encode()
        runs = (replace(each, workflow=word.decode(), body=bytes(payload)) for each in self.requests(number))
        self.shard.step(runs, self._now_ms)
        self.shard.step((), self._now_ms)  # the effects of a step are held until the next

    def rate(self, runs: int) -> float:
        """Return whole runs per second: what is in flight ends, as much is requested, and the window is filled."""
        done = 0
        begun = clock.monotonic()
        while done < runs:
            done += self.advance()
        return done / (clock.monotonic() - begun)

    def advance(self) -> int:
        """Take one step; return how many runs it served."""
        self._now_ms += _STEP_MS
        inputs: list[Input] = [*map(_completion, self._in_flight), *self.requests(len(self._in_flight))]
        self._in_flight = self.shard.step(inputs, self._now_ms).dispatches
        return len(self._in_flight)


def rows_of_idle(tenants: int, policy: Policy, *, history: bool = False) -> Iterator[Record]:
    """Yield the rows of a shard that knows so many tenants, each of which once had a run and has nothing now."""
    yield ShardRecord(shard=0, shards=1, step=1, now_ms=_STARTED_MS, seq=tenants, uses=tenants)
    yield PolicyRecord(version=0, policy=policy)
    yield RingRecord(class_=DEFAULT_CLASS, next_place=tenants)
    for place in range(tenants):
        tenant = f"idle-{place}"
        yield FlowRecord(
            class_=DEFAULT_CLASS,
            tenant=tenant,
            place=place,
            charged=_COST,
            actual=_COST,
            settled_estimate=_COST,
            dispatched=1,
            ended=1,
            left=place + 1,
        )
        if history:
            yield HistoryRecord(tenant=tenant, workflow=f"{WORKFLOW}-{place}", count=1, last_use=place + 1)


def _completion(dispatch: Dispatch) -> Completion:
    return Completion(0, dispatch.tenant, dispatch.run_id, dispatch.attempt, SUCCEEDED, dispatch.estimate)
