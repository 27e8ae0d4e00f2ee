"""Drives a shard through a long seeded history and prints a hash of everything it said, in the order it said it.

Run as a program, so that a test can start it under different hash seeds: `python -m tests.property.replayed SEED`.
"""

from __future__ import annotations

import hashlib
import random
import sys

from streams.core.effects import Dispatch
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, SUCCEEDED, Input, SetPolicy, Takeover, Undeliverable
from streams.core.policy import Estimates, Leases, Limits, Policy, TenantRules
from streams.core.shard import Shard
from tests.assertions import plain
from tests.builders import make_cancel, make_policy, make_report, make_submit

TENANTS = [f"tenant-{number}" for number in range(12)]
STATUSES = (SUCCEEDED, SUCCEEDED, SUCCEEDED, FAILED, HEARTBEAT, RETURNED)


def history_hash(seed: int, steps: int = 600) -> str:
    draw = random.Random(seed)
    shard, digest, now, position = Shard(0, 1), hashlib.sha256(), 1_000_000, 0
    in_flight: list[Dispatch] = []
    for step in range(steps):
        inputs: list[Input] = [Takeover(step // 100 + 1)] if step % 100 == 0 else []
        for _ in range(draw.randint(0, 12)):
            position += 1
            tenant, run_id = draw.choice(TENANTS), f"r{draw.randrange(500)}"
            if draw.random() < 0.05:
                inputs.append(make_cancel(tenant, run_id))
            elif draw.random() < 0.01:
                inputs.append(Undeliverable(tenant, run_id, 2_000, draw.choice((None, 1_000))))
            elif draw.random() < 0.02:
                inputs.append(SetPolicy(position, _policy(draw)))
            elif in_flight and draw.random() < 0.6:
                dispatch = in_flight.pop(draw.randrange(len(in_flight)))
                inputs.append(make_report(dispatch, draw.choice(STATUSES), draw.randint(0, 300), retryable=True))
            else:
                class_ = draw.choice(("high", "low", None))
                cost = draw.choice((None, draw.randint(1, 500)))
                inputs.append(make_submit(tenant, run_id, position=position, cost=cost, class_=class_))
        now += draw.choice((0, 1, 50, 700, -20))
        effects = shard.step(inputs, now)
        in_flight += effects.dispatches
        written = [(key, record and plain(record)) for key, record in effects.changed.items()]
        said = (effects.step, effects.now_ms, effects.dispatches, effects.revokes, effects.rejections)
        digest.update(repr((said, effects.settlements, written, list(effects.counts.items()))).encode())
    digest.update(repr([plain(record) for record in shard.dump()]).encode())
    return digest.hexdigest()


def _policy(draw: random.Random) -> Policy:
    return make_policy(
        quantum=draw.choice((10, 100)),
        runs=draw.choice((None, 8)),
        tokens=2_000,
        rules={tenant: TenantRules(weight=draw.randint(1, 4), max_queued_runs=20) for tenant in TENANTS[::2]},
        classes=draw.choice((("high", "low"), ("low", "high"), ("low",))),
        estimates=Estimates(source="max"),
        leases=Leases(lease_ms=2_000, max_lease_ms=2_000, backoff_ms=30),
        limits=Limits(max_queued_runs=100),
    )


if __name__ == "__main__":
    sys.stdout.write(history_hash(int(sys.argv[1])))
