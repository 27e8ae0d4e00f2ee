"""The forms of the rows, as data: which fields stand in the key, which in the value, in which order.

A form never changes once it is released: a field added, removed or moved is a new version beside the old one,
and an old version's reader stays (`tests/golden` has its bytes). Fields that the key holds are not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from streams.core import records
from streams.rows.positions import POSITIONS, PositionsRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one version of one kind of row is written."""

    kind: str
    version: int
    record: type[Any]
    key: tuple[str, ...]  # fields in the row's key, after its kind
    value: tuple[str, ...]  # fields in the row's value, after its version
    body: str | None = None  # a field of bytes, which follows the value's JSON as it is


FORMS: Final[tuple[Form, ...]] = (
    Form(
        kind=records.SHARD,
        version=1,
        record=records.ShardRecord,
        key=(),
        value=(
            "shard",
            "shards",
            "epoch",
            "step",
            "now_ms",
            "outage_ms",
            "seq",
            "run_ms_fp",
            "moved_ms",
            "uses",
            "clock",
        ),
    ),
    Form(
        kind=records.POLICY,
        version=1,
        record=records.PolicyRecord,
        key=(),
        value=("version", "policy"),
    ),
    Form(
        kind=records.RING,
        version=1,
        record=records.RingRecord,
        key=("class_",),
        value=(
            "round",
            "cursor",
            "visiting",
            "next_place",
            "tag",
            "max_estimate",
            "max_under",
            "max_over",
            "past_charged",
            "past_dispatched",
            "past_ended",
        ),
    ),
    Form(
        kind=records.FLOW,
        version=1,
        record=records.FlowRecord,
        key=("class_", "tenant"),
        value=(
            "place",
            "deficit",
            "accrued",
            "half_visit",
            "state",
            "charged",
            "actual",
            "dispatched",
            "ended",
            "settled_estimate",
            "base",
            "peak",
            "left",
        ),
    ),
    Form(
        kind=records.RUN,
        version=1,
        record=records.RunRecord,
        key=("tenant", "run_id"),
        value=(
            "workflow",
            "class_",
            "position",
            "estimate",
            "max_tokens",
            "deadline_ms",
            "max_attempts",
            "lease_ms",
            "submitted_ms",
            "not_before_ms",
        ),
        body="body",
    ),
    Form(
        kind=records.RETRY,
        version=1,
        record=records.RetryRecord,
        key=("tenant", "run_id"),
        value=("attempt", "tries", "ready_ms", "lost"),
    ),
    Form(
        kind=records.FLIGHT,
        version=1,
        record=records.FlightRecord,
        key=("tenant", "run_id", "attempt"),
        value=(
            "class_",
            "workflow",
            "tries",
            "seq",
            "dispatched_ms",
            "estimate",
            "charged",
            "reported",
            "expires_ms",
            "lease_ms",
            "heard",
            "revoked",
            "class_pays",
        ),
    ),
    Form(
        kind=records.HISTORY,
        version=1,
        record=records.HistoryRecord,
        key=("tenant", "workflow"),
        value=("count", "mean_fp", "error_fp", "last_use", "ratios"),
    ),
    Form(
        kind=records.ENDED,
        version=1,
        record=records.EndedRecord,
        key=("step",),
        value=("at_ms", "runs", "lost"),
    ),
    Form(
        kind=POSITIONS,
        version=1,
        record=PositionsRecord,
        key=(),
        value=("epoch", "applied", "partitions"),
    ),
)
