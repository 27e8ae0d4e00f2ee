"""The forms of the rows, as data: which fields stand in the key, which in the value, in which order.

A form never changes once it is released: a field added, removed or moved is a new version beside the old one,
and an old version's reader stays (`tests/golden` has its bytes). Fields that the key holds are not repeated. The types
stand here and are not asked of the records: those may change, and a compiled record no longer knows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streams.core import records
from streams.core.policy import Policy
from streams.core.records import FlowState
from streams.rows.migration import FILLING, MOVED, FillingRecord, MovedRecord
from streams.rows.positions import POSITIONS, PositionsRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one version of one kind of row is written."""

    kind: str
    version: int
    record: type[Any]
    key: dict[str, type]  # fields in the row's key, after its kind
    value: dict[str, Any]  # fields in the row's value, after its version, and what each must be when it is read
    body: str | None = None  # a field of bytes, which follows the value's JSON as it is


FORMS: Final[tuple[Form, ...]] = (
    Form(
        kind=records.SHARD,
        version=1,
        record=records.ShardRecord,
        key={},
        value={
            "shard": int,
            "shards": int,
            "epoch": int,
            "step": int,
            "now_ms": int,
            "outage_ms": int,
            "seq": int,
            "run_ms_fp": int,
            "moved_ms": int,
            "uses": int,
            "clock": int,
        },
    ),
    Form(
        kind=records.POLICY,
        version=1,
        record=records.PolicyRecord,
        key={},
        value={
            "version": int,
            "policy": Policy,
        },
    ),
    Form(
        kind=records.RING,
        version=1,
        record=records.RingRecord,
        key={"class_": str},
        value={
            "round": int,
            "cursor": int,
            "visiting": bool,
            "next_place": int,
            "tag": int,
            "max_estimate": int,
            "max_under": int,
            "max_over": int,
            "past_charged": int,
            "past_dispatched": int,
            "past_ended": int,
        },
    ),
    Form(
        kind=records.FLOW,
        version=1,
        record=records.FlowRecord,
        key={"class_": str, "tenant": str},
        value={
            "place": int,
            "deficit": int,
            "accrued": int,
            "half_visit": bool,
            "state": FlowState,
            "charged": int,
            "actual": int,
            "dispatched": int,
            "ended": int,
            "settled_estimate": int,
            "base": int,
            "since": int,
            "peak": int,
            "left": int,
            "extra": int,
        },
    ),
    Form(
        kind=records.RUN,
        version=1,
        record=records.RunRecord,
        key={"tenant": str, "run_id": str},
        value={
            "workflow": str,
            "class_": str,
            "position": int,
            "estimate": int,
            "max_tokens": int | None,
            "deadline_ms": int | None,
            "max_attempts": int,
            "lease_ms": int,
            "submitted_ms": int,
            "not_before_ms": int,
        },
        body="body",
    ),
    Form(
        kind=records.RETRY,
        version=1,
        record=records.RetryRecord,
        key={"tenant": str, "run_id": str},
        value={
            "attempt": int,
            "tries": int,
            "ready_ms": int,
            "lost": dict[int, int],
        },
    ),
    Form(
        kind=records.FLIGHT,
        version=1,
        record=records.FlightRecord,
        key={"tenant": str, "run_id": str, "attempt": int},
        value={
            "class_": str,
            "workflow": str,
            "tries": int,
            "seq": int,
            "dispatched_ms": int,
            "estimate": int,
            "charged": int,
            "reported": int,
            "expires_ms": int,
            "lease_ms": int,
            "heard": bool,
            "revoked": bool,
            "class_pays": bool,
        },
    ),
    Form(
        kind=records.HISTORY,
        version=1,
        record=records.HistoryRecord,
        key={"tenant": str, "workflow": str},
        value={
            "count": int,
            "mean_fp": int,
            "last_use": int,
            "ratios": dict[int, int],
        },
    ),
    Form(
        kind=records.ENDED,
        version=1,
        record=records.EndedRecord,
        key={"step": int},
        value={
            "at_ms": int,
            "runs": list[tuple[str, str]],
            "lost": list[tuple[str, str, str, int, int]],
        },
    ),
    Form(
        kind=POSITIONS,
        version=1,
        record=PositionsRecord,
        key={},
        value={
            "epoch": int,
            "applied": dict[str, int],
            "partitions": dict[str, int],
        },
    ),
    Form(
        kind=POSITIONS,
        version=2,
        record=PositionsRecord,
        key={},
        value={
            "epoch": int,
            "applied": dict[str, int],
            "partitions": dict[str, int],
            "topics": dict[str, str],
        },
    ),
    Form(
        kind=POSITIONS,
        version=3,
        record=PositionsRecord,
        key={},
        value={
            "epoch": int,
            "applied": dict[str, int],
            "partitions": dict[str, int],
            "topics": dict[str, str],
            "journal": str,
            "core": int,
            "state": str,
        },
    ),
    Form(
        kind=MOVED,
        version=1,
        record=MovedRecord,
        key={},
        value={
            "prefix": str,
            "shards": int,
            "swept": dict[str, int],
        },
    ),
    Form(
        kind=FILLING,
        version=1,
        record=FillingRecord,
        key={},
        value={
            "prefix": str,
            "shards": int,
        },
    ),
)
