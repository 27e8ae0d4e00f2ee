"""The topics as data: names, keys, partitions, retention. Created and checked by `streams.admin.topics`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


class Count(Enum):
    """What sets a topic's number of partitions."""

    SHARDS = "one per shard"
    DISPATCH = "the workers' parallelism"
    ONE = "one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic. `configs` are Kafka's topic settings, beside those that depend on the cluster's size."""

    name: str  # without the prefix
    key: str  # what a record's key holds, for people
    count: Count
    compacted: bool = False
    configs: dict[str, str] = field(default_factory=dict)
    spare: bool = False  # runs are served without it: a deployment that an older version has made lacks it


class TopicNames(NamedTuple):
    """The full names of the topics of one deployment."""

    requests: str
    completions: str
    dispatch: str
    rejected: str
    policy: str
    journal: str
    state: str
    board: str
    status: str
    checkpoints: str


def topic_names(prefix: str) -> TopicNames:
    """Return the names of the deployment that uses `prefix`."""
    return TopicNames(*(prefix + topic.name for topic in TOPICS))


# Twice the largest record of ours, see `STEP_BYTES`. Such a bound costs nothing while records are small, and what
# exceeds the topic's bound would stop a shard for ever.
# A producer has a bound of its own: librdkafka's `message.max.bytes` (1 MB by default) must be set to this.
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024

# What Kafka adds to a record that stands alone in its batch, and the mark of one that is forwarded; well below this.
OVERHEAD_BYTES: Final = 512

# What all of a step can come to in one record: its journal record, or the row of the runs that ended in it, with the
# longest names there may be. The step is bounded so that they fit (`tests/unit/app/test_step_bounds.py`).
STEP_BYTES: Final = 8 * 1024 * 1024

# What the policies that a step applies may take of its journal record. Such a step takes nothing else in.
MAX_POLICY_BYTES: Final = 3 * 1024 * 1024

# How long a deletion is kept in the state topic once it has been compacted. A reader that takes longer may have seen a
# row and miss that it was deleted: the loader gives up before. Longer means that a takeover reads more that is dead.
STATE_DELETIONS_KEPT_MS: Final = 10 * 60_000

_LARGE: Final = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}

TOPICS: Final[tuple[Topic, ...]] = (
    Topic(name="requests", key="tenant", count=Count.SHARDS, configs={"retention.ms": str(7 * _DAY_MS)}),
    Topic(name="completions", key="tenant", count=Count.SHARDS, configs={"retention.ms": str(7 * _DAY_MS)}),
    Topic(name="dispatch", key="run_id", count=Count.DISPATCH, configs={"retention.ms": str(7 * _DAY_MS), **_LARGE}),
    Topic(name="rejected", key="tenant", count=Count.SHARDS, configs={"retention.ms": str(30 * _DAY_MS), **_LARGE}),
    Topic(name="policy", key="name", count=Count.ONE, compacted=True, configs={**_LARGE}),
    Topic(name="journal", key="shard", count=Count.SHARDS, configs={"retention.ms": str(30 * _DAY_MS), **_LARGE}),
    Topic(
        name="state",
        key="shard, row key",
        count=Count.SHARDS,
        compacted=True,
        # Compacted often, so that a takeover reads little that is dead: the active segment is never cleaned,
        # so it is rolled by size and by time, and a fifth of dead records is enough to start the cleaner.
        configs={
            "segment.bytes": str(32 * 1024 * 1024),
            "segment.ms": str(10 * 60_000),
            "min.cleanable.dirty.ratio": "0.2",
            "max.compaction.lag.ms": str(_HOUR_MS),
            "delete.retention.ms": str(STATE_DELETIONS_KEPT_MS),
            **_LARGE,
        },
    ),
    Topic(name="board", key="shard", count=Count.SHARDS, configs={"retention.ms": str(_HOUR_MS)}),
    Topic(name="status", key="shard, tenant", count=Count.ONE, compacted=True, configs={"segment.ms": str(_HOUR_MS)}),
    Topic(
        name="checkpoints",
        key="shard",
        count=Count.SHARDS,
        # Longer than the journal's: its first record needs a checkpoint before it.
        configs={"retention.ms": str(31 * _DAY_MS), **_LARGE},
        spare=True,
    ),
)
