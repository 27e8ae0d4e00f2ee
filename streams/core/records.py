"""The state of a shard as records: what survives a crash, one Kafka row each. `streams.rows` turns them into bytes.

Records are plain and mutable; only `streams.core` changes them. What can be worked out from them (queues, heap,
sums, timers) is rebuilt at load and not kept here. Each record names its row by a `Key`: a tuple whose first
item is the kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from streams.core.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

Key = tuple[str, ...]

SHARD: Final = "shard"  # (SHARD,)
POLICY: Final = "policy"  # (POLICY,)
RING: Final = "ring"  # (RING, class)
FLOW: Final = "flow"  # (FLOW, class, tenant)
RUN: Final = "run"  # (RUN, tenant, run_id)
RETRY: Final = "retry"  # (RETRY, tenant, run_id)
FLIGHT: Final = "flight"  # (FLIGHT, tenant, run_id, attempt)
HISTORY: Final = "history"  # (HISTORY, tenant, workflow)
ENDED: Final = "ended"  # (ENDED, step)


class FlowState(IntEnum):
    """Where a flow is. Activity is stored, never inferred."""

    IDLE = 0  # nothing queued: earns nothing, keeps its debt
    ACTIVE = 1  # in the ring
    BLOCKED = 2  # has work but its tenant is at its own cap, or paused: earns nothing


# On the path of every run, where looking a member up in its enum would cost as much as a call.
IDLE: Final = FlowState.IDLE
ACTIVE: Final = FlowState.ACTIVE
BLOCKED: Final = FlowState.BLOCKED


@dataclass(slots=True)
class ShardRecord:
    """The shard's own counters."""

    shard: int
    shards: int
    epoch: int = 0  # number of owners so far
    step: int = 0  # number of steps so far
    now_ms: int = 0  # of the last step; never goes back
    outage_ms: int = 0  # sum of the times without an owner; leases run on now_ms - outage_ms
    seq: int = 0  # last sequence number given to a dispatch or revoke
    run_ms_fp: int = 0  # decayed mean of how long an attempt takes, ms << 16; for `retry_after_ms`
    moved_ms: int = 0  # when an attempt last started or ended
    uses: int = 0  # last number given to what is forgotten in order of use: histories, idle flows
    clock: int = 0  # virtual time of the classes, see `streams.core.classes`


@dataclass(slots=True)
class PolicyRecord:
    """The policy in force and the offset it came from (-1: built-in)."""

    version: int
    policy: Policy


@dataclass(slots=True)
class RingRecord:
    """The virtual time of a class: round and cursor. A round is one pass over the active flows."""

    class_: str
    round: int = 1
    cursor: int = -1  # place of the flow visited last in this round; -1: none yet
    visiting: bool = False  # the flow at the cursor is in the middle of its visit
    next_place: int = 0  # the place the next new flow gets
    tag: int = 0  # of the class among the classes: the virtual time at which its turn comes, see `streams.core.classes`
    # The figures of the bound, since no flow of the class had work; see `streams.core.gap`.
    max_estimate: int = 0  # largest estimate a flow had waited with at its head, or balance it came in with
    max_under: int = 0  # largest amount by which an attempt cost more than it was charged at first
    max_over: int = 0  # largest amount that was given back when an attempt ended
    # Sums over the flows that have been forgotten.
    past_charged: int = 0
    past_dispatched: int = 0
    past_ended: int = 0


@dataclass(slots=True)
class FlowRecord:
    """A (class, tenant): its place, its deficit and its account, all in tokens.

    charged == actual + sum of the charges of its attempts in flight.
    """

    class_: str
    tenant: str
    place: int  # in the ring, fixed at first activity; unique in the class
    deficit: int = 0  # signed; negative is debt; as of round `accrued`
    accrued: int = 0  # the last round whose quantum is in `deficit`
    half_visit: bool = False  # its last visit was broken off by the cap: the next one earns nothing
    state: FlowState = FlowState.IDLE
    charged: int = 0
    actual: int = 0
    dispatched: int = 0  # attempts
    ended: int = 0  # runs that ended, however they ended
    settled_estimate: int = 0  # sum of the estimates of the attempts that are settled: what `actual` is held against
    base: int = 0  # what it had been charged, plus its balance, in round `since`; see `streams.core.gap`
    since: int = 0  # the round from which what it earns is counted there
    peak: int = 0  # most attempts its tenant had in flight, plus late reports, since it last had nothing to do
    left: int = 0  # number (of `ShardRecord.uses`) given when it came to rest; 0: it is not, see `forgetting`
    extra: int = 0  # what its visit in round `accrued` + 1 earns beyond its rate; see `streams.core.groups`


@dataclass(slots=True)
class RunRecord:
    """A run that has not ended, with everything a retry needs. Never changes, so its payload is written once."""

    tenant: str
    run_id: str
    workflow: str
    class_: str
    position: int  # FIFO place inside its flow, also after a retry; below 0: it was moved here, see `resharding`
    estimate: int  # tokens charged at each dispatch
    max_tokens: int | None
    deadline_ms: int | None
    max_attempts: int
    lease_ms: int
    submitted_ms: int
    not_before_ms: int  # 0: at once
    body: bytes


@dataclass(slots=True)
class RetryRecord:
    """What a run that was dispatched and came back has behind it. An attempt in flight is told by its own row."""

    tenant: str
    run_id: str
    attempt: int  # number of the last attempt that ended; never goes back
    tries: int  # attempts that count against max_attempts
    ready_ms: int  # the pause before the next attempt ends then
    lost: dict[int, int] = field(default_factory=dict)  # attempt -> tokens charged, for attempts given up as lost


@dataclass(slots=True)
class FlightRecord:
    """An attempt in flight: it holds a place in the window until it is settled, even if its run has ended."""

    tenant: str
    run_id: str
    class_: str
    workflow: str
    attempt: int
    tries: int  # with this one
    seq: int  # of its dispatch; unique in the shard
    dispatched_ms: int
    estimate: int  # tokens charged at dispatch and held in the window
    charged: int  # tokens charged so far: the estimate, or what a heartbeat said if that is more
    reported: int  # tokens the worker's heartbeats have owned up to
    expires_ms: int  # on the lease clock: now_ms - outage_ms
    lease_ms: int
    heard: bool = False  # a worker has reported on it
    revoked: bool = False  # the run ended by another way; only the account is open
    class_pays: bool = False  # it was served on its class's own share, see `streams.core.classes`


@dataclass(slots=True)
class HistoryRecord:
    """What runs of a (tenant, workflow) have cost. Fixed point: tokens << 16."""

    tenant: str
    workflow: str
    count: int = 0
    mean_fp: int = 0  # decayed mean of the actual cost
    last_use: int = 0  # number (of `ShardRecord.uses`): the least recently used are forgotten first
    ratios: dict[int, int] = field(default_factory=dict)  # sketch of actual / estimate: bucket -> count


@dataclass(slots=True)
class EndedRecord:
    """The runs that ended in one step: a page of the memory that tells a retry from a new run."""

    step: int
    at_ms: int
    runs: list[tuple[str, str]]  # (tenant, run_id)
    lost: list[tuple[str, str, str, int, int]] = field(default_factory=list)
    # (tenant, run_id, class, attempt, tokens charged): attempts of these runs that were given up as lost, whose
    # account is amended if they are heard of after all


Record = (
    ShardRecord
    | PolicyRecord
    | RingRecord
    | FlowRecord
    | RunRecord
    | RetryRecord
    | FlightRecord
    | HistoryRecord
    | EndedRecord
)


def fields_of(record: type[Record]) -> Callable[[Record], tuple[Any, ...]]:
    """Return what reads all fields of such a record, in the order of its constructor."""
    return attrgetter(*(each.name for each in fields(record)))


def key_of(record: Record) -> Key:
    """Return the row key of a record."""
    match record:
        case ShardRecord():
            return (SHARD,)
        case PolicyRecord():
            return (POLICY,)
        case RingRecord():
            return (RING, record.class_)
        case FlowRecord():
            return (FLOW, record.class_, record.tenant)
        case RunRecord():
            return (RUN, record.tenant, record.run_id)
        case RetryRecord():
            return (RETRY, record.tenant, record.run_id)
        case FlightRecord():
            return (FLIGHT, record.tenant, record.run_id, str(record.attempt))
        case HistoryRecord():
            return (HISTORY, record.tenant, record.workflow)
    return (ENDED, str(record.step))
