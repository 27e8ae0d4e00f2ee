"""The live gap of a class stays within its bound, whatever tenants and workers do; and it tells if it wouldn't.

Shards here are not doubted by `invariants.check`, which would notice anything: the gap has to find it out by itself
(`tests.unit.core.mutants` gives flows a second quantum, or forgets charges, and these tests must fail).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from streams.core.effects import Dispatch
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, SUCCEEDED, Input
from streams.core.policy import Leases, Policy, TenantRules
from streams.core.snapshot import ClassView
from tests.builders import LONG_MS, make_policy, make_report
from tests.drivers import Driver

TENANTS = ("a", "b", "c", "d", "e")
STEPS = 600


def policy_of(draw: Random) -> Policy:
    """Weights, caps, groups and windows of all kinds; costs are what requests say."""
    rules = {
        tenant: TenantRules(
            weight=draw.randint(1, 4),
            group=draw.choice((None, "g")),
            max_runs_in_flight=draw.choice((None, None, None, 1, 2)),
        )
        for tenant in TENANTS
    }
    leases = Leases(lease_ms=40, min_lease_ms=1, max_lease_ms=LONG_MS, max_attempts=1_000, backoff_ms=10)
    policy = make_policy(
        quantum=draw.choice((20, 50, 300)),
        runs=draw.choice((1, 2, 5)),
        tokens=draw.choice((None, 200, 2_000)),
        rules=rules,
        leases=leases,
    )
    return replace(policy, groups={"g": draw.randint(1, 3)})


class Load:
    """Keeps every tenant's queue filled most of the time, and workers that are wrong, slow, silent and late."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.policies = [policy_of(self.draw) for _ in range(3)]
        self.driver = Driver(self.policies[0], doubted=False)
        self.number = 0
        self.open: list[Dispatch] = []
        self.silent: list[Dispatch] = []

    def step(self) -> ClassView:
        """Take one step of anything, and return what the class looks like then."""
        draw, driver = self.draw, self.driver
        if draw.random() < 0.01:
            driver.set_policy(draw.choice(self.policies))
        inputs: list[Input] = []
        for view in driver.shard.snapshot().flows or [None]:
            tenant = draw.choice(TENANTS) if view is None or draw.random() < 0.2 else view.tenant
            if view is None or (view.queued_runs < 3 and draw.random() < 0.7):
                self.number += 1
                cost = draw.choice((draw.randint(1, 30), draw.randint(1, 300), 3_000 if draw.random() < 0.05 else 1))
                inputs += driver.requests(tenant, [f"r{self.number}"], cost=cost)
        inputs += self._reports()
        effects = driver.step(*inputs, after_ms=draw.choice((0, 1, 5)))
        self.open += effects.dispatches
        return driver.shard.snapshot().classes[0]

    def _reports(self) -> Iterator[Input]:
        draw = self.draw
        for _ in range(draw.randint(0, 3)):
            if self.silent and draw.random() < 0.1:  # by now it has been given up, most likely
                yield make_report(self.silent.pop(0), SUCCEEDED, draw.randint(0, 500))
            if not self.open:
                return
            dispatch = self.open.pop(draw.randrange(len(self.open)))
            if draw.random() < 0.03:
                self.silent.append(dispatch)
                continue
            actual = dispatch.estimate * draw.choice((0, 1, 4, 8, 8, 8, 9, 12, 40)) // 8
            status = draw.choice((SUCCEEDED, SUCCEEDED, SUCCEEDED, SUCCEEDED, FAILED, HEARTBEAT, RETURNED))
            if status == HEARTBEAT:
                self.open.append(dispatch)
            yield make_report(dispatch, status, actual, retryable=status == FAILED)


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_is_within_its_bound_after_every_step(seed: int) -> None:
    load = Load(seed)
    seen = [load.step() for _ in range(STEPS)]
    assert all(0 <= view.gap <= view.bound for view in seen)
    assert sum(view.gap > 0 for view in seen) > STEPS // 3, "hardly two flows were ever compared"
    assert len(load.driver.dispatches) > STEPS // 2


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_close_if_estimates_are_right(seed: int) -> None:
    """Then it is a quantum and the largest head of each of two flows: who is favoured is found out at once."""
    draw = Random(seed)
    rules = {tenant: TenantRules(weight=draw.randint(1, 3)) for tenant in TENANTS}
    rules["c"] = rules["d"] = TenantRules(group="g")
    rules["e"] = TenantRules(weight=3, max_runs_in_flight=1)
    policy = replace(make_policy(quantum=100, runs=draw.choice((2, 3)), rules=rules), groups={"g": 1})
    driver = Driver(policy, doubted=False)
    for number in range(100):
        for tenant in TENANTS:
            driver.submit(tenant, f"r{number}", cost=draw.randint(1, 150))
    views = []
    for done in range(250):
        driver.succeed(driver.dispatches[done])
        views.append(driver.shard.snapshot().classes[0])
    widest = 100 + 2 * 150 + 2 * 150  # between c and d, which have half a weight each
    assert all(0 <= view.gap <= view.bound <= widest for view in views)
    assert max(view.gap for view in views) >= 100
