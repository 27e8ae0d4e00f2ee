"""Lets an estimator learn what runs have cost, without a shard around it."""

from __future__ import annotations

from streams.core.estimator import Estimator, History
from streams.core.policy import Estimates, Memory
from streams.core.records import Key, Record
from tests.builders import make_flight, make_policy

DEFAULT = 1_000
RULES = Estimates(prior_runs=4, decay_runs=32, min_charge=1)
ROOMY = Memory()


def learn(
    estimator: Estimator,
    *costs: int,
    tenant: str = "a",
    workflow: str = "w",
    estimate: int = DEFAULT,
    decay: int = RULES.decay_runs,
    memory: Memory = ROOMY,
    changed: dict[Key, Record | None] | None = None,
) -> History:
    """Let runs of a workflow end with these costs, one after the other; `changed` collects the rows."""
    flight = make_flight(estimate, tenant=tenant, workflow=workflow)
    policy = make_policy(estimates=Estimates(decay_runs=decay), memory=memory)
    rows = {} if changed is None else changed
    for cost in costs:
        use = max((history.last_use for history in estimator.histories.values()), default=0) + 1
        estimator.learn(flight, cost, use=use, policy=policy, changed=rows)
    return estimator.histories["history", tenant, workflow]
