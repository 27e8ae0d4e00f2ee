"""A shard that schedules nothing: the yardstick for what scheduling costs.

It has the same door as `streams.core.shard.Shard` and writes the same kinds and numbers of rows, dispatches and
journal entries, but every run is dispatched the moment it comes in: no queue, no ring, no ledger, no estimate,
no window, no lease. What a loop over it takes is Kafka, codecs and the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.effects import Dispatch, Effects, Settlement
from streams.core.inputs import SUCCEEDED, Completion, SetPolicy, Submit, Takeover
from streams.core.policy import Policy
from streams.core.records import (
    ENDED,
    FLIGHT,
    FLOW,
    HISTORY,
    RING,
    RUN,
    SHARD,
    EndedRecord,
    FlightRecord,
    FlowRecord,
    HistoryRecord,
    PolicyRecord,
    RingRecord,
    RunRecord,
    ShardRecord,
)
from streams.core.snapshot import ShardSnapshot, ShardView
from streams.core.waiting import WORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streams.core.inputs import Input
    from streams.core.records import Record

TOKENS: Final = 1_000  # what every run of the benchmarks costs
WORKFLOW: Final = "bench"
CLASS: Final = "default"
_LEASE_MS: Final = 60_000


class BareShard:
    """Dispatches in order of arrival, at once and without limit. Not for use: it forgets everything at a crash."""

    def __init__(self, shard: int, shards: int) -> None:
        """Begin empty."""
        self._record = ShardRecord(shard=shard, shards=shards)
        self._ring = RingRecord(class_=CLASS)
        self._flows: dict[str, FlowRecord] = {}
        self._histories: dict[str, HistoryRecord] = {}
        self._ended = 0
        self._policy_version = -1

    @classmethod
    def load(cls, shard: int, shards: int, records: Iterable[Record]) -> BareShard:
        """Begin where the shard's own row says, with nothing else."""
        bare = cls(shard, shards)
        for record in records:
            if isinstance(record, ShardRecord):
                bare._record = record
        return bare

    def dump(self) -> Iterator[Record]:
        """Yield what `load` takes."""
        yield self._record
        yield PolicyRecord(version=self._policy_version, policy=Policy())

    def step(self, inputs: Iterable[Input], now_ms: int) -> Effects:
        """Turn each request into a dispatch and each completion into tombstones."""
        record = self._record
        record.step += 1
        record.now_ms = now_ms
        out = Effects(record.step, now_ms)
        out.changed[(SHARD,)] = record
        for given in inputs:
            if isinstance(given, Submit):
                self._dispatch(given, out)
            elif isinstance(given, Completion):
                if given.status == SUCCEEDED:
                    self._settle(given, out)
            elif isinstance(given, Takeover):
                record.epoch = given.epoch
            elif isinstance(given, SetPolicy):
                self._policy_version = given.position
        return out

    def next_timer_ms(self) -> int | None:
        """Nothing falls due."""
        return None

    def snapshot(self) -> ShardSnapshot:
        """Return the shard without its flows."""
        record = self._record
        view = ShardView(
            shard=record.shard,
            shards=record.shards,
            epoch=record.epoch,
            step=record.step,
            now_ms=record.now_ms,
            seq=record.seq,
            policy_name="bare",
            policy_version=-1,
            quantum=1,
            window_runs=None,
            window_tokens=None,
            flight_runs=record.seq - self._ended,
            flight_tokens=(record.seq - self._ended) * TOKENS,
            queued_runs=0,
            queued_bytes=0,
            known_flows=len(self._flows),
            active_flows=0,
            histories=len(self._histories),
            attempt_ms=0,
            waiting_for=WORK,
            moved_ms=record.now_ms,
            stuck=False,
        )
        return ShardSnapshot(shard=view, classes=(), flows=())

    @property
    def epoch(self) -> int:
        """How many owners the shard has had."""
        return self._record.epoch

    @property
    def now_ms(self) -> int:
        """The time of the last step."""
        return self._record.now_ms

    @property
    def policy_version(self) -> int:
        """The last policy it was told, which changes nothing."""
        return self._policy_version

    def _flow(self, tenant: str) -> FlowRecord:
        if tenant not in self._flows:
            self._flows[tenant] = FlowRecord(class_=CLASS, tenant=tenant, place=len(self._flows))
        return self._flows[tenant]

    def _dispatch(self, run: Submit, out: Effects) -> None:
        record = self._record
        record.seq += 1
        out.changed[RING, CLASS] = self._ring
        out.changed[FLOW, CLASS, run.tenant] = self._flow(run.tenant)
        out.changed[RUN, run.tenant, run.run_id] = RunRecord(
            tenant=run.tenant,
            run_id=run.run_id,
            workflow=run.workflow,
            class_=CLASS,
            position=run.position,
            estimate=TOKENS,
            max_tokens=None,
            deadline_ms=None,
            max_attempts=1,
            lease_ms=_LEASE_MS,
            submitted_ms=run.submitted_ms,
            not_before_ms=0,
            body=run.body,
        )
        out.changed[FLIGHT, run.tenant, run.run_id, "1"] = FlightRecord(
            tenant=run.tenant,
            run_id=run.run_id,
            class_=CLASS,
            workflow=run.workflow,
            attempt=1,
            tries=1,
            seq=record.seq,
            dispatched_ms=record.now_ms,
            estimate=TOKENS,
            charged=TOKENS,
            reported=0,
            expires_ms=record.now_ms + _LEASE_MS,
            lease_ms=_LEASE_MS,
        )
        out.dispatches.append(
            Dispatch(
                seq=record.seq,
                tenant=run.tenant,
                run_id=run.run_id,
                workflow=run.workflow,
                class_=CLASS,
                attempt=1,
                estimate=TOKENS,
                lease_ms=_LEASE_MS,
                deadline_ms=None,
                body=run.body,
                submitted_ms=run.submitted_ms,
                round=0,
                deficit_before=0,
                deficit_after=-TOKENS,
            )
        )

    def _settle(self, done: Completion, out: Effects) -> None:
        self._ended += 1
        out.changed[RUN, done.tenant, done.run_id] = None
        out.changed[FLIGHT, done.tenant, done.run_id, "1"] = None
        out.changed[FLOW, CLASS, done.tenant] = self._flow(done.tenant)
        history = self._histories.setdefault(done.tenant, HistoryRecord(tenant=done.tenant, workflow=WORKFLOW))
        out.changed[HISTORY, done.tenant, WORKFLOW] = history
        page = out.changed.setdefault((ENDED, str(out.step)), EndedRecord(step=out.step, at_ms=out.now_ms, runs=[]))
        assert isinstance(page, EndedRecord)
        page.runs.append((done.tenant, done.run_id))
        out.settlements.append(
            Settlement(done.tenant, done.run_id, 1, SUCCEEDED, TOKENS, done.tokens or 0, reported=True)
        )
