"""How the runs of a deployment are spread over its new shards, and what the policy makes of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core.records import FlightRecord, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streams.core.policy import Policy
    from streams.core.records import Record


def runs_of(shards: Sequence[Sequence[Record]]) -> list[int]:
    """Return how many runs that have not ended each shard has."""
    return [sum(isinstance(record, RunRecord) for record in records) for records in shards]


def remarks(shards: Sequence[Sequence[Record]], policy: Policy) -> Iterator[str]:
    """Yield what somebody who chooses a number of shards would want to know.

    Limits are a shard's: a merged one may be above them, and is treated as if the policy had just lowered them.
    """
    limits, window = policy.limits, policy.window.runs
    flights = [sum(isinstance(each, FlightRecord) and not each.revoked for each in records) for records in shards]
    queued = max(runs - own for runs, own in zip(runs_of(shards), flights, strict=True))
    held = max(sum(len(each.body) for each in records if isinstance(each, RunRecord)) for records in shards)
    over = []
    if limits.max_queued_runs is not None and queued > limits.max_queued_runs:
        over.append(f"{queued:,} queued runs, above the policy's limit of {limits.max_queued_runs:,}")
    if limits.max_queued_bytes is not None and held > limits.max_queued_bytes:
        over.append(f"{held:,} bytes of runs, above the policy's limit of {limits.max_queued_bytes:,}")
    if over:
        refuses = limits.overload == "refuse"
        what = "newcomers are refused until it is below" if refuses else "with the next newcomer runs are given up"
        yield f"a new shard has {', and '.join(over)}: {what}"
    if window is not None and len(shards) > window:
        yield f"{len(shards)} shards share a window of {window} runs: each has one place all the same"
