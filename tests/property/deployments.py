"""A deployment of several shards under one clock: its tenants spread, its history random, its shards doubted.

For what is true of all shards together, such as moving them to another number.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from streams.core.effects import Dispatch, Effects
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, SUCCEEDED, Input, SetPolicy, Takeover
from streams.core.invariants import check
from streams.core.policy import Policy
from streams.core.records import PolicyRecord, Record
from streams.core.resharding import reshard
from streams.core.shard import Shard
from streams.wire import partition_for
from tests.assertions import plain, rows_of
from tests.builders import make_cancel, make_report, make_submit

TENANTS = tuple("abcdefgh")
STATUSES = (SUCCEEDED, SUCCEEDED, SUCCEEDED, FAILED, HEARTBEAT, RETURNED)
START_MS = 1_000_000


class Deployment:
    """Shards that are fed by tenant, and every dispatch so far."""

    def __init__(self, shards: Sequence[Shard], policy: Policy, *, now_ms: int = START_MS) -> None:
        self.shards = list(shards)
        self.policy = policy
        self.now_ms = now_ms
        self.dispatches: list[Dispatch] = []
        self.in_flight: list[Dispatch] = []
        self.accepted: set[tuple[str, str]] = set()
        self.rejected: set[tuple[str, str]] = set()
        self.spent = 0  # tokens settled
        self._position = 0

    @classmethod
    def make(cls, shards: int, policy: Policy) -> Deployment:
        made = cls([Shard(shard, shards) for shard in range(shards)], policy)
        made.set_policy(policy)
        return made

    def set_policy(self, policy: Policy, only: Iterable[int] | None = None) -> None:
        """State a policy; `only` some shards have heard of it."""
        self.policy = policy
        self._position += 1
        for shard in range(len(self.shards)) if only is None else only:
            self._step(shard, [SetPolicy(self._position, policy)])

    def tell(self, given: Sequence[Input]) -> None:
        """Take a step in each shard that is told something, and in no other: they are never equally far."""
        homes: dict[int, list[Input]] = {}
        for each in given:
            assert not isinstance(each, SetPolicy | Takeover)
            homes.setdefault(partition_for(each.tenant, len(self.shards)), []).append(each)
        for shard, inputs in sorted(homes.items()):
            self._step(shard, inputs)

    def live(self, draw: random.Random, steps: int, *, name: str = "r") -> None:
        """Go through a random history; runs are named `name` and a number."""
        for _ in range(steps):
            self.tell([self._anything(draw, name) for _ in range(draw.randint(0, 8))])
            self.now_ms += draw.choice((0, 0, 1, 10, 60))

    def moved_to(self, shards: int) -> Deployment:
        """Return the same deployment with another number of shards, each of them doubted."""
        records = resharded(self, shards)
        moved = Deployment([Shard.load(number, shards, own) for number, own in enumerate(records)], self.policy)
        moved.now_ms, moved.in_flight, moved._position = self.now_ms, list(self.in_flight), 0
        for shard, own in zip(moved.shards, records, strict=True):
            check(shard)
            assert len(rows_of(shard)) == len(own)
        for number in range(shards):
            moved._step(number, [Takeover(1)])
        return moved

    def drain(self) -> None:
        """Finish everything that is in flight, and what follows, until nothing is left."""
        for _ in range(10_000):
            self.now_ms += 100
            self.tell([make_report(each, SUCCEEDED, 7) for each in self.in_flight])
            for shard in range(len(self.shards)):
                self._step(shard, [])
            views = [shard.snapshot().shard for shard in self.shards]
            if not self.in_flight and not any(view.queued_runs or view.flight_runs for view in views):
                return
        raise AssertionError("it does not drain")

    def _anything(self, draw: random.Random, name: str) -> Input:
        self._position += 1
        tenant, run_id = draw.choice(TENANTS), f"{name}{draw.randrange(60)}"
        chance = draw.random()
        if chance < 0.05:
            return make_cancel(tenant, run_id)
        if self.in_flight and chance < 0.5:
            return make_report(draw.choice(self.in_flight), draw.choice(STATUSES), draw.randint(0, 300), retryable=True)
        if self.dispatches and chance < 0.55:
            return make_report(draw.choice(self.dispatches), SUCCEEDED, draw.randint(0, 300))
        return make_submit(
            tenant,
            run_id,
            position=self._position,
            cost=draw.choice((None, draw.randint(1, 12), draw.randint(1, 500))),
            class_=draw.choice((None, "high", "mid", "low")),
            workflow=draw.choice("xyz"),
            not_before_ms=draw.choice((None, None, self.now_ms + draw.randint(-20, 150))),
            deadline_ms=draw.choice((None, None, None, self.now_ms + draw.randint(1, 300))),
            max_attempts=draw.choice((None, 3)),
            body=run_id.encode(),
        )

    def _step(self, shard: int, inputs: Sequence[Input]) -> None:
        self._book(self.shards[shard].step(inputs, self.now_ms))

    def _book(self, effects: Effects) -> None:
        self.spent += sum(each.actual for each in effects.settlements)
        ended = {(each.tenant, each.run_id, each.attempt) for each in effects.settlements}
        self.in_flight = [each for each in self.in_flight if (each.tenant, each.run_id, each.attempt) not in ended]
        self.in_flight += effects.dispatches
        self.dispatches += effects.dispatches
        self.rejected |= {(each.tenant, each.run_id) for each in effects.rejections}


def resharded(old: Deployment, shards: int) -> list[list[Record]]:
    """Return the records of another number of shards."""
    records = [[plain(each) for each in shard.dump()] for shard in old.shards]
    before = [[plain(each) for each in own] for own in records]
    made = reshard(records, shards, PolicyRecord(version=0, policy=old.policy), partition_for)
    assert records == before, "the old records have been changed"
    return made
