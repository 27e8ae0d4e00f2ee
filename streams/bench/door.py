"""The whole door of the core: request, dispatch, completion, with estimate, ledger, lease and row changes. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.core.inputs import SUCCEEDED, Completion, SetPolicy, Submit
from streams.core.policy import Limits, Policy, Window
from streams.core.shard import Shard

if TYPE_CHECKING:
    from streams.core.effects import Dispatch
    from streams.core.inputs import Input

WINDOW: Final = 256
_COST: Final = 1_000  # tokens
_STEP_MS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorCase:
    """A number of tenants with work, of known tenants without, and a cost in quanta."""

    tenants: int
    idle: int = 0
    cost_in_quanta: int = 1

    @property
    def name(self) -> str:
        """What a person calls it."""
        parts = [f"{self.tenants:,} tenants"]
        if self.idle:
            parts.append(f"{self.idle:,} idle ones")
        if self.cost_in_quanta > 1:
            parts.append(f"a run costs {self.cost_in_quanta:,} quanta")
        return ", ".join(parts)


def door_rate(case: DoorCase, runs: int) -> int:
    """Return whole runs per second of one shard with every tenant backlogged; the window is always full."""
    load = _Load(case)
    dispatches = load.shard.step(load.requests(max(2 * case.tenants, 8 * WINDOW)), load.now_ms).dispatches
    done = 0
    begun = clock.monotonic()
    while done < runs:
        load.now_ms += _STEP_MS
        inputs: list[Input] = [*map(_completion, dispatches), *load.requests(len(dispatches))]
        dispatches = load.shard.step(inputs, load.now_ms).dispatches
        done += len(dispatches)
    return round(done / (clock.monotonic() - begun))


class _Load:
    """A shard and the requests made of it."""

    def __init__(self, case: DoorCase) -> None:
        self.shard = Shard(0, 1)
        self.now_ms = 1_000
        self._tenants = [f"tenant-{number}" for number in range(case.tenants)]
        self._made = 0
        quantum = max(1, _COST // case.cost_in_quanta)
        cost = quantum * case.cost_in_quanta
        policy = Policy(quantum=quantum, window=Window(runs=WINDOW), limits=Limits(max_queued_runs=None))
        self.shard.step([SetPolicy(0, policy)], self.now_ms)
        self._cost = cost
        for first in range(0, case.idle, WINDOW):
            self._come_and_go([f"idle-{number}" for number in range(first, min(first + WINDOW, case.idle))])

    def requests(self, number: int) -> list[Submit]:
        """Return the next requests, from each tenant in turn."""
        first, tenants, cost = self._made, self._tenants, self._cost
        self._made += number
        return [
            Submit(at, tenants[at % len(tenants)], f"run-{at}", "bench", estimate=cost)
            for at in range(first, first + number)
        ]

    def _come_and_go(self, names: list[str]) -> None:
        """Make tenants known by one run each, which ends at once."""
        requests = [Submit(self._made + at, name, "only", "bench") for at, name in enumerate(names)]
        self._made += len(names)
        dispatches = self.shard.step(requests, self.now_ms).dispatches
        self.shard.step([_completion(each) for each in dispatches], self.now_ms)


def _completion(dispatch: Dispatch) -> Completion:
    return Completion(0, dispatch.tenant, dispatch.run_id, dispatch.attempt, SUCCEEDED, dispatch.estimate)
