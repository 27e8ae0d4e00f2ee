"""The yardstick writes what a real shard writes, or the ratio to it would say nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from streams.bench.bare import TOKENS, BareShard
from streams.core.effects import Effects
from streams.core.inputs import SUCCEEDED, Completion, SetPolicy, Submit, Takeover
from streams.core.policy import Policy, Window
from streams.core.shard import Shard

POLICY = Policy(window=Window(runs=1_000))
REQUESTS = [Submit(n, f"tenant-{n % 20}", f"run-{n}", "bench", body=b'{"payload":1}') for n in range(200)]


def written(effects: Effects) -> dict[str, int]:
    """How many there are of each kind of record that the step writes."""
    rows = Counter(f"{kind}, gone" if row is None else kind for (kind, *_), row in effects.changed.items())
    return dict(rows) | {"dispatches": len(effects.dispatches), "settlements": len(effects.settlements)}


def steps(shard: Shard | BareShard) -> list[Effects]:
    shard.step([Takeover(1), SetPolicy(0, POLICY)], 1_000)
    dispatched = shard.step(REQUESTS, 1_001)
    done = [
        Completion(n, d.tenant, d.run_id, d.attempt, SUCCEEDED, TOKENS) for n, d in enumerate(dispatched.dispatches)
    ]
    return [dispatched, shard.step(done, 1_002)]


@pytest.mark.parametrize("step", [0, 1], ids=["dispatch", "settle"])
def test_it_writes_as_many_records_of_each_kind_as_a_shard(step: int) -> None:
    assert written(steps(BareShard(0, 1))[step]) == written(steps(Shard(0, 1))[step])


def test_it_goes_on_from_its_own_row() -> None:
    first = BareShard(0, 1)
    steps(first)
    second = BareShard.load(0, 1, first.dump())
    assert (second.epoch, second.now_ms) == (1, 1_002)
    assert second.step([REQUESTS[0]], 1_003).dispatches[0].seq == 201


def test_a_policy_is_taken_so_that_it_is_told_once() -> None:
    shard = BareShard(0, 1)
    shard.step([SetPolicy(7, POLICY)], 1_000)
    assert shard.policy_version == 7
