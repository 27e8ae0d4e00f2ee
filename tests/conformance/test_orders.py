"""Cases with one right order: that of classic deficit round robin."""

from __future__ import annotations

from collections import Counter

import pytest

from streams.core import reasons
from tests.builders import make_policy, make_submit
from tests.conformance.cases import all_cases, names_of, queue, serial
from tests.conformance.wrong_variants import VARIANTS, classic
from tests.drivers import Driver

ORDERS = names_of("order")


@pytest.mark.parametrize("name", ORDERS)
def test_order(name: str) -> None:
    case = all_cases()[name]
    driver = serial(case.quanta())
    queue(driver, case.items())
    assert driver.serve_all() == case.expect["order"]["classic_drr"]


@pytest.mark.parametrize("name", [name for name in ORDERS if "prefix" in all_cases()[name].expect])
def test_prefixes(name: str) -> None:
    case = all_cases()[name]
    driver = serial(case.quanta())
    queue(driver, case.items())
    driver.serve_all()
    for prefix in case.expect["prefix"]:
        served = driver.dispatches[: prefix["after"]]
        items, cost = Counter[str](), Counter[str]()
        for dispatch in served:
            items[dispatch.tenant] += 1
            cost[dispatch.tenant] += dispatch.estimate
        for tenant, expected in prefix["classic_drr"].items():
            assert (items[tenant], cost[tenant]) == (expected["items"], expected["cost"])


@pytest.mark.parametrize("name", ORDERS)
def test_the_expected_order_is_not_that_of_a_wrong_scheduler(name: str) -> None:
    case = all_cases()[name]
    expected = case.expect["order"]["classic_drr"]
    assert classic(case.items(), case.quanta()) == expected
    for variant in case.expect["told_apart_from"]:
        assert VARIANTS[variant](case.items(), case.quanta()) != expected, variant


def test_rust_bounded_tenants_refuses_a_tenant_too_many() -> None:
    """The peer bounds their number; ours names them: a closed policy refuses who is not in it."""
    driver = Driver(make_policy(runs=1, weights={"a": 1, "b": 1}, closed=True))
    (rejection,) = driver.step(make_submit("c", "c1", position=9)).rejections
    assert rejection.reason == reasons.UNKNOWN_TENANT
    assert driver.shard.snapshot().shard.queued_runs == 0
