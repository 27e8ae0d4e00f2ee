"""Cases that are little stories: one test each, with the case's name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core import counts, reasons
from streams.core.policy import Policy, TenantRules
from streams.core.policy_check import parse_policy
from streams.core.policy_problems import PolicyInvalid
from streams.errors import BadRecord
from streams.wire import decode_completion, decode_request
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.conformance.cases import all_cases, queue, serial
from tests.drivers import START_MS, Driver


def test_dmclock_dynamic_weights_1000() -> None:
    """500 of each at 1:2, drained; then 500 of each at 3:1. Shares of each window, exactly."""
    case = all_cases()["dmclock_dynamic_weights_1000"]
    driver = serial({"c1": 1, "c2": 2}, doubted=False)
    first, drain, change, _, second = case.expect["steps"]
    assert (drain, change) == ({"drain": True}, {"set_weight": {"c1": 150, "c2": 50}})
    for step, weights in ((first, None), (second, {"c1": 3, "c2": 1})):
        if weights:
            driver.set_policy(make_policy(quantum=1, runs=1, weights=weights))
        start = len(driver.dispatches)
        items = [(tenant, f"{start}{tenant}{n}", 1) for tenant in ("c1", "c2") for n in range(500)]
        queue(driver, items)
        low, high = step["window"]
        while len(driver.dispatches) < start + high:
            driver.succeed(driver.dispatches[-1])
        tenants = [dispatch.tenant for dispatch in driver.dispatches[start + low : start + high]]
        for tenant, share in step["share"].items():
            assert tenants.count(tenant) / len(tenants) == pytest.approx(share, abs=step["tolerance"])
        driver.step(*(make_cancel(tenant, run_id) for tenant, run_id, _ in items))  # the rest need not be run
        driver.succeed(driver.dispatches[-1])


def test_dmclock_reject_at_limit() -> None:
    """The peer limits arrivals per second, and lets a refused one count. We limit what waits; refusals are free.

    Counting them would lock out a producer that retries, however much room there is by then.
    """
    driver = Driver(make_policy(runs=1, rules={"c": TenantRules(max_queued_runs=1)}))
    driver.submit("c", "1")
    driver.submit("c", "2")
    for number in range(3, 20):
        assert driver.submit("c", str(number)).rejections
    driver.succeed(driver.dispatches[-1])
    assert not driver.submit("c", "20").rejections


def test_dmclock_remove_tenant_with_backlog() -> None:
    """We have no call that hands a tenant's backlog back: each run is cancelled. None is served later, none is lost."""
    case = all_cases()["dmclock_remove_tenant_with_backlog"]
    driver = serial(case.quanta())
    driver.step(make_submit("blocker", "b", position=driver.position(), cost=1))
    queue(driver, case.items())
    assert driver.shard.snapshot().shard.queued_runs == case.expect["queued"]
    removed = case.expect["remove 17"]
    effects = driver.step(*(make_cancel("17", run_id) for run_id in removed["returned_in_order"]))
    assert effects.counts[counts.CANCELLED] == len(removed["returned_in_order"])
    assert driver.shard.snapshot().shard.queued_runs == removed["queued"]
    driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1])
    assert driver.served() == ["b", *case.expect["next two"]]
    left = [run_id for tenant, run_id, _ in case.items() if tenant == "98"]
    driver.step(*(make_cancel("98", run_id) for run_id in left))
    assert driver.shard.snapshot().shard.queued_runs == case.expect["remove 98"]["queued"]


def test_idle_tenant_keeps_no_credit() -> None:
    """Of the two published answers we take the older: credit is dropped with the queue. Debt is not: see the ledger."""
    case = all_cases()["idle_tenant_keeps_no_credit"]
    backlog, idle = case.expect["steps"]
    driver = serial({"prog": 1_000, "other": 1_000})
    queue(driver, [("other", "o1", 1_000), ("prog", "p1", 1_000_000)])
    driver.submit("other", *[f"x{n}" for n in range(9)], cost=1_000)
    for _ in range(backlog["times"]):
        driver.succeed(driver.dispatches[-1])
    assert driver.flow("prog").deficit == backlog["deficit_if_nothing_served"]
    driver.step(make_cancel("prog", "p1"))
    assert driver.flow("prog").deficit == idle["older_version_deficit"]
    driver.succeed(driver.dispatches[-1])
    assert driver.flow("prog").deficit == 0  # an empty queue never gets a quantum


def test_k8s_cancel_while_queued() -> None:
    driver = Driver(make_policy(quantum=1, runs=None, tokens=1))
    driver.submit("fs1", "one", cost=1)
    driver.submit("fs2", "two", cost=1)
    driver.step(make_cancel("fs2", "two"), after_ms=1_000)
    assert driver.shard.snapshot().shard.queued_runs == 0
    driver.succeed(driver.dispatches[-1])
    assert driver.served() == ["one"]
    assert driver.flow("fs2").charged == 0
    assert driver.shard.snapshot().shard.flight_runs == 0


def test_k8s_head_does_not_fit() -> None:
    """Whose turn it is waits for room; a smaller run is not let past it."""
    driver = Driver(make_policy(quantum=100, runs=None, tokens=50))
    driver.submit("held", "h1", cost=25)
    driver.submit("held2", "h2", cost=1)
    assert driver.shard.snapshot().shard.flight_tokens == 26
    driver.step(*driver.requests("q1", ["wide"], cost=25), *driver.requests("q0", ["small"], cost=10))
    driver.step()
    assert driver.served() == ["h1", "h2"]
    driver.succeed(driver.dispatches[1])  # in use: 25
    assert driver.served() == ["h1", "h2", "wide"]


@pytest.mark.parametrize(
    "numbers", [case for case in all_cases()["llmd_reconcile_on_completion"].expect["cases"] if "actual" in case]
)
def test_llmd_reconcile_on_completion(numbers: dict[str, dict[str, int]]) -> None:
    """Debt goes below zero. What a token of output weighs is the worker's to say: it reports tokens in all."""
    for weight in (1, 2):
        driver = Driver(make_policy(quantum=1_000, runs=1))
        driver.submit("prog", "r1", "r2", cost=1)  # r2 stays queued, so that the credit of 999 is kept
        actual = numbers["actual"]["input"] + weight * numbers["actual"]["output"]
        driver.set_policy(make_policy(quantum=1_000, runs=1, rules={"prog": TenantRules(paused=True)}))
        driver.succeed(driver.dispatches[0], tokens=actual)
        assert driver.flow("prog").deficit == numbers["deficit_after"][f"output_weight_{weight}"]


def test_llmd_reconcile_on_completion_then_another_is_picked() -> None:
    debt = all_cases()["llmd_reconcile_on_completion"].expect["cases"][2]
    driver = Driver(make_policy(quantum=2_000, runs=1))
    driver.step(*driver.requests("prog", ["r1", "r2"], cost=1_500), *driver.requests("other", ["o1", "o2"], cost=1_000))
    driver.succeed(driver.dispatches[0], tokens=debt["actual_total"])
    assert driver.flow("prog").deficit == debt["deficit_after"]["output_weight_1"]
    assert driver.served() == ["r1", "o1"]


def test_llmd_reconcile_on_completion_decay() -> None:
    """The peer halves a balance every minute. Ours fades by rounds: by what was served meanwhile, not by the clock."""
    driver = serial({"prog": 1_000, "other": 1_000})
    queue(driver, [("other", "o", 1_000), ("prog", "r1", 1)])
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1], tokens=10_001)
    driver.step(after_ms=3_600_000)
    assert driver.flow("prog").deficit == -10_000
    driver.submit("other", *[f"o{n}" for n in range(6)], cost=1_000)
    for _ in range(5):
        driver.succeed(driver.dispatches[-1])
    assert driver.flow("prog").deficit == -5_000


def test_rust_debt_paid_before_next_slice() -> None:
    driver = serial({"large": 10, "small": 10})
    driver.step(*driver.requests("large", ["l1", "l2"], cost=10), *driver.requests("small", ["s1", "s2"], cost=10))
    driver.succeed(driver.dispatches[-1], tokens=30)
    driver.succeed(driver.dispatches[-1], tokens=5)
    assert driver.served() == ["l1", "s1", "s2"]


def test_rust_debt_paid_before_next_slice_with_equal_costs() -> None:
    keys = ["large", "small", "medium"]
    driver = serial(dict.fromkeys(keys, 10))
    queue(driver, [(key, f"{key}{n}", 10) for n in range(2) for key in keys])
    assert driver.serve_all() == [f"{key}{n}" for n in range(2) for key in keys]


def test_rust_debt_paid_before_next_slice_if_nobody_asked_for_it() -> None:
    """A report on what is not in flight changes nothing; a run taken back while it runs is not queued again."""
    driver = serial({"a": 10})
    driver.submit("a", "r1", "r2", cost=10)
    nobody = replace(make_report(driver.dispatches[0], tokens=500), run_id="r2")
    assert driver.step(nobody).counts == {counts.UNKNOWN: 1}
    assert driver.flow("a").charged == 10
    driver.step(make_cancel("a", "r1"))
    driver.submit("a", "again", cost=10)  # the same tenant, a new run
    driver.step(make_report(driver.dispatches[0], "failed", 10, retryable=True))
    assert driver.serve_all() == ["r1", "r2", "again"]


def test_rust_debt_paid_before_next_slice_of_three() -> None:
    driver = serial(dict.fromkeys("abc", 10), runs=2)
    queue(driver, [(key, f"{key}{n}", 10) for n in range(2) for key in "abc"])
    assert driver.served() == ["a0", "b0"]
    driver.succeed(*driver.dispatches)
    assert driver.served()[2] == "c0"


def test_temporal_fairsim_late_key() -> None:
    """The peer lets a newcomer in at once. Ours waits for the next round, as in the paper, whose order this is.

    Its place is behind all others. If it joined the round under way, fresh names, one after the other, would keep that
    round from ending, and everybody before them from being served.
    """
    case = all_cases()["temporal_fairsim_late_key"]
    driver = serial(case.quanta())
    queue(driver, [("a", f"a{n}", 1) for n in range(4)] + [("b", "b0", 1)])
    driver.succeed(driver.dispatches[-1])
    driver.submit("c", "c0", "c1", cost=1)
    driver.serve_all()
    order = [dispatch.tenant for dispatch in driver.dispatches]
    assert order == case.expect["classic_drr_order"] == ["a", "b", "a", "c", "a", "c", "a"]


def test_temporal_fairsim_late_key_one_after_the_other() -> None:
    """A new name whenever a run has ended: joining the round under way, they would keep `a` waiting for all of them.

    So a round holds those who came before it began, and ends: each time `a` waits for one name more, and no longer.
    """
    driver = Driver(make_policy(quantum=1, runs=1))
    driver.submit("a", *[f"a{n}" for n in range(20)], cost=1)
    for number in range(20):
        driver.submit(f"new{number}", "n", cost=1)
        driver.succeed(driver.dispatches[-1])
    names = [dispatch.tenant for dispatch in driver.dispatches]
    assert [number for number, name in enumerate(names) if name == "a"] == [0, 1, 3, 6, 10, 15]
    assert [name for name in names if name != "a"] == [f"new{number}" for number in range(15)]


REFUSED_POLICIES = {
    "quantum 0": {"quantum": 0},
    "negative quantum": {"quantum": -1},
    "weight 0": {"tenants": {"a": {"weight": 0}}},
    "negative weight": {"tenants": {"a": {"weight": -7}}},
    "NaN weight": {"tenants": {"a": {"weight": float("nan")}}},
    "infinite weight": {"default": {"weight": float("inf")}},
    "empty tenant id": {"tenants": {"": {"weight": 1}}},
}


@pytest.mark.parametrize("document", REFUSED_POLICIES.values(), ids=REFUSED_POLICIES.keys())
def test_bad_numbers_refused(document: dict[str, object]) -> None:
    with pytest.raises(PolicyInvalid):
        parse_policy(document)


@pytest.mark.parametrize("field", ["estimate", "max_tokens", "max_attempts", "lease_ms"])
@pytest.mark.parametrize("number", ["-1", "1.5", "NaN", "Infinity", "1e400", '"7"', "18446744073709551616"])
def test_bad_numbers_refused_in_a_request(field: str, number: str) -> None:
    value = f'{{"tenant":"a","run_id":"r","workflow":"w","{field}":{number}}}'
    with pytest.raises(BadRecord):
        decode_request(b"a", value.encode(), 1, START_MS)


@pytest.mark.parametrize("number", ["-1", "1.5", "NaN", "-100"])
def test_bad_numbers_refused_in_a_report(number: str) -> None:
    value = f'{{"tenant":"a","run_id":"r","attempt":1,"status":"succeeded","tokens":{number}}}'
    with pytest.raises(BadRecord):
        decode_completion(b"a", value.encode(), 1)


def test_bad_numbers_refused_but_for_a_list_of_nobody() -> None:
    """A closed policy that names no tenant is a way to stop all intake: everybody is refused, with the reason."""
    driver = Driver(parse_policy({"closed": True}))
    assert driver.submit("a", "r1").rejections[0].reason == reasons.UNKNOWN_TENANT


def test_bad_numbers_refused_but_for_a_cost_of_zero() -> None:
    """Two peers refuse an item of cost 0. A run may turn out to cost nothing: it is charged the stated minimum."""
    driver = Driver(make_policy())
    driver.submit("a", "r1", cost=0)
    assert driver.dispatches[0].estimate == Policy().estimates.min_charge == 1
    driver.succeed(driver.dispatches[0], tokens=0)
    assert driver.flow("a").actual == 1
