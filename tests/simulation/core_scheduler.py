"""The core behind the simulated pool's protocol, doubted as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.core.effects import Dispatch
from streams.core.inputs import SUCCEEDED, Input, SetPolicy
from streams.core.invariants import check
from streams.core.policy import Policy
from streams.core.shard import Shard
from streams.simulate.pool import Start
from streams.simulate.workload import Arrival
from tests.assertions import assert_works
from tests.builders import make_report, make_submit

START_MS = 1_000_000
DOUBTED = 500  # one step of so many is checked: the check walks over everything


def true_cost(arrival: Arrival) -> int:
    return arrival.tokens


class CoreScheduler:
    """One shard. `reported` is what a worker says a run has cost."""

    def __init__(self, policy: Policy, reported: Callable[[Arrival], int] = true_cost) -> None:
        self.shard = Shard(0, 1)
        self.shard.step([SetPolicy(0, policy)], START_MS)
        self._reported = reported
        self._waiting: dict[tuple[str, str], Arrival] = {}
        self._flying: dict[tuple[str, str], Dispatch] = {}
        self._position = 0

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> list[Start]:
        """Take one step: what has ended, what has arrived, then what may go."""
        inputs: list[Input] = []
        for arrival in ended:
            dispatch = self._flying.pop((arrival.tenant, arrival.run_id))
            inputs.append(make_report(dispatch, SUCCEEDED, self._reported(arrival)))
        for arrival in arrived:
            self._position += 1
            self._waiting[arrival.tenant, arrival.run_id] = arrival
            inputs.append(
                make_submit(
                    arrival.tenant,
                    arrival.run_id,
                    position=self._position,
                    cost=arrival.estimate,
                    workflow=arrival.workflow,
                )
            )
        effects = self.shard.step(inputs, START_MS + now_ms)
        assert not effects.rejections
        assert len(effects.dispatches) <= free
        assert_works(self.shard, effects)
        if effects.step % DOUBTED == 0:
            check(self.shard)
        starts = []
        for dispatch in effects.dispatches:
            identity = (dispatch.tenant, dispatch.run_id)
            self._flying[identity] = dispatch
            starts.append(Start(self._waiting.pop(identity), dispatch.estimate))
        return starts
