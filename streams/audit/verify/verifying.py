"""`verify`: all shards and all topics, merged by time, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Final

from streams.audit.recording import Rec, Recording
from streams.audit.verify.checkpoints import hold_checkpoints
from streams.audit.verify.dispatches import Dispatches
from streams.audit.verify.findings import Findings, Problem
from streams.audit.verify.forwards import Forwards
from streams.audit.verify.intervals import Share
from streams.audit.verify.measured import hold_bound
from streams.audit.verify.policies import Policies
from streams.audit.verify.refusals import Refusals
from streams.audit.verify.shard import ShardVerifier
from streams.audit.verify.stretch import Widest
from streams.errors import ConfigError
from streams.wire import topic_names

INTERVAL_MS: Final = 60_000
_HELD_AGAINST: Final = ("dispatch", "rejected", "policy")  # without it nothing of that would be found wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was looked at, what was found, and how tenants fared."""

    problems: list[Problem]  # by shard and step
    found: int  # with those above `MOST` of a kind, which are only counted
    looked_at: dict[str, int]
    steps: dict[int, int]  # by shard: the last one
    shares: list[Share]
    widest: list[tuple[int, Widest]]  # by shard: the pair of each class that came nearest to its bound


def verify(
    recording: Recording,
    *,
    interval_ms: int = INTERVAL_MS,
    replay: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Check a recording by arithmetic. Shares are compared over intervals of `interval_ms`.

    With `replay` the bound is checked by a replay too, for all tenants: see `measured`.
    `progress` is told how many journal records have been followed, after each. Raises what reading raises, and with
    `replay` `NotReplayable` if there is neither the beginning nor a checkpoint to begin with.
    """
    for topic in _HELD_AGAINST:
        if not recording.partitions(topic):
            raise ConfigError(f"the topic {topic} is not there, and the journal is held against it", field="topics")
    findings, names = Findings(), topic_names(recording.prefix)
    policies, dispatches = Policies(recording, findings), Dispatches(recording, findings)
    refusals, forwards = Refusals(recording, names, findings), Forwards(names, findings)
    shards = [
        ShardVerifier(
            recording,
            shard,
            findings,
            policies=policies,
            dispatches=dispatches,
            refusals=refusals,
            forwards=forwards,
            interval_ms=interval_ms,
        )
        for shard in range(recording.shards)
    ]
    streams = [
        *(shard.steps() for shard in shards),
        *_all(recording, "dispatch", dispatches.read),
        *_all(recording, "rejected", refusals.read),
    ]
    for _ in merge(*streams):
        progress(findings.looked_at["steps"])
    for shard in shards:
        shard.finish()
        hold_checkpoints(recording, shard.shard, findings)
        if replay:
            hold_bound(recording, shard.shard, findings)
    spans = {shard.shard: shard.span for shard in shards}
    dispatches.finish(spans)
    refusals.finish(spans)
    forwards.finish(recording, {shard.shard for shard in shards if shard.complete})
    return Report(
        problems=sorted(findings.problems, key=_place),
        found=findings.total,
        looked_at=dict(sorted(findings.looked_at.items())),
        steps={shard.shard: shard.chain.last.step if shard.chain.last else 0 for shard in shards},
        shares=sorted(
            (share for shard in shards for share in shard.shares.shares.values()),
            key=lambda each: (each.class_, each.tenant),
        ),
        widest=[(shard.shard, pair) for shard in shards for pair in shard.stretches.widest.values()],
    )


def _all(recording: Recording, topic: str, read: Callable[[int, Rec], None]) -> list[Iterator[int]]:
    return [_each(recording, topic, partition, read) for partition in range(recording.partitions(topic))]


def _each(recording: Recording, topic: str, partition: int, read: Callable[[int, Rec], None]) -> Iterator[int]:
    for record in recording.read(topic, partition):
        yield record.timestamp
        read(partition, record)


def _place(problem: Problem) -> tuple[bool, int, bool, int]:
    """Order problems as things happened: of no step, and of no shard, comes last."""
    return (problem.shard is None, problem.shard or 0, problem.step is None, problem.step or 0)
