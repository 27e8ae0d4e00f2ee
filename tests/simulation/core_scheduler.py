"""Ours in the simulated pool, doubted as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.core.effects import Effects
from streams.core.inputs import Input
from streams.core.invariants import check
from streams.core.policy import Policy
from streams.core.shard import Shard
from streams.simulate.deficit_round_robin import DeficitRoundRobin, true_cost
from streams.simulate.workload import Arrival
from tests.assertions import assert_works

DOUBTED = 500  # one step of so many is checked: the check walks over everything


class CoreScheduler(DeficitRoundRobin):
    """One shard. `reported` is what a worker says a run has cost."""

    def __init__(self, policy: Policy, reported: Callable[[Arrival], int] = true_cost) -> None:
        super().__init__(policy, slots=policy.window.runs, reported=reported)
        (self.shard,) = self.shards

    def step(self, shard: Shard, inputs: Sequence[Input], now_ms: int) -> Effects:
        effects = super().step(shard, inputs, now_ms)
        assert not effects.rejections
        assert_works(shard, effects)
        if effects.step % DOUBTED == 0:
            check(shard)
        return effects
