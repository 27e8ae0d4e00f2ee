"""Who is forgotten when a newcomer needs the place, and who never is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from streams.core import reasons
from streams.core.effects import Effects
from streams.core.forgetting import MAX_FORGOTTEN
from streams.core.inputs import HEARTBEAT
from streams.core.policy import Leases, Memory, Policy, TenantRules
from streams.core.records import RingRecord
from streams.core.shard import Shard
from tests.assertions import plain, said
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver


def small(flows: int, policy: Policy | None = None) -> Policy:
    """A policy under which a shard knows so many flows."""
    policy = policy or make_policy()
    return replace(policy, memory=replace(policy.memory, flows=flows))


def known(driver: Driver) -> list[str]:
    return [flow.tenant for flow in driver.shard.snapshot().flows]


def serve(driver: Driver, *tenants: str, tokens: int | None = None) -> None:
    """Let each tenant file one run and have it served: then it is at rest."""
    for tenant in tenants:
        driver.succeed(driver.submit(tenant, f"r{driver.position()}").dispatches[-1], tokens=tokens)


def ring(driver: Driver, class_: str = "default") -> RingRecord:
    row = driver.rows["ring", class_]
    assert isinstance(row, RingRecord)
    return row


def refused(driver: Driver, tenant: str) -> Effects:
    """Submit a run that the shard has no place for; nothing else is changed."""
    effects = driver.submit(tenant, f"r{driver.position()}")
    (rejection,) = effects.rejections
    assert rejection.reason == reasons.OVERLOADED
    assert set(effects.changed) == {("shard",)}
    return effects


def test_a_newcomer_takes_the_place_of_who_has_been_at_rest_the_longest() -> None:
    driver = Driver(small(3))
    serve(driver, "a", "b", "c", "a")
    effects = driver.submit("d", "r1")
    assert effects.changed["flow", "default", "b"] is None
    assert known(driver) == ["a", "c", "d"]
    assert set(driver.shard._state.tenants) == {"a", "c", "d"}


def test_below_the_limit_nobody_is_forgotten() -> None:
    driver = Driver(small(3))
    serve(driver, "a", "b", "c", "a", "b")
    assert known(driver) == ["a", "b", "c"]
    assert driver.shard._state.resting is None


def test_what_the_forgotten_have_done_stays_in_the_books() -> None:
    driver = Driver(small(1))
    serve(driver, "a", "b", "c")
    assert (ring(driver).past_charged, ring(driver).past_dispatched, ring(driver).past_ended) == (200, 2, 2)


def test_who_returns_is_a_newcomer_at_the_end_of_the_ring() -> None:
    driver = Driver(small(1))
    serve(driver, "a", "b", "a")
    assert driver.flow_row("a").place == 2
    assert driver.flow("a").dispatched == 1


def test_a_debt_is_never_forgotten_and_the_newcomer_is_refused() -> None:
    driver = Driver(small(2))
    serve(driver, "a", "b", tokens=10_000)
    (rejection,) = refused(driver, "c").rejections
    assert (rejection.limit, rejection.value, rejection.retry_after_ms) == (2, 2, 1_000)
    assert driver.flow("a").deficit == -9_800  # b's visit was a round
    assert driver.submit("a", "again").rejections == []


def test_a_debt_that_has_faded_is_none() -> None:
    driver = Driver(small(2, make_policy(runs=1)))
    serve(driver, "a", tokens=350)
    driver.submit("b", *[f"b{number}" for number in range(9)])
    balances = []
    while driver.submit("c", f"c{driver.position()}").rejections:
        balances.append(driver.flow("a").deficit)
        driver.succeed(driver.dispatches[-1])  # a round passes
    assert balances == [-150, -50]
    assert known(driver) == ["b", "c"]


def test_a_debt_is_over_when_the_cursor_has_passed_its_place() -> None:
    driver = Driver(small(2, make_policy(runs=1)))
    serve(driver, "a")
    serve(driver, "b", tokens=350)  # its place is behind that of a
    driver.submit("a", *[f"a{number}" for number in range(9)])
    balances = []
    while driver.submit("c", f"c{driver.position()}").rejections:
        balances.append(driver.flow("b").deficit)
        driver.succeed(driver.dispatches[-1])
    assert balances == [-250, -150, -50]
    assert known(driver) == ["a", "c"]


def test_who_was_at_rest_and_is_no_more_is_passed_over() -> None:
    driver = Driver(small(3, make_policy(runs=1)))
    serve(driver, "a", tokens=450)
    serve(driver, "b")  # in round 2
    driver.submit("c", *[f"c{number}" for number in range(9)])  # from round 3 on: a owes 150
    driver.submit("d", *[f"d{number}" for number in range(9)])  # for b
    refused(driver, "e")
    driver.submit("a", "a2", "a3")
    for _ in range(5):  # two rounds, and a's debt would be over, had it stayed at rest; a third pays for a2
        driver.succeed(driver.dispatches[-1])
    assert (driver.served()[-1], ring(driver).round) == ("a2", 6)
    refused(driver, "e")


@pytest.mark.parametrize("credit", [0, 30])
def test_credit_of_a_refund_keeps_a_flow_until_it_has_faded(credit: int) -> None:
    driver = Driver(small(1))
    serve(driver, "a", tokens=100 - credit)
    effects = driver.submit("b", "b1")
    assert len(effects.rejections) == (1 if credit else 0)


def test_who_has_something_in_flight_is_not_forgotten() -> None:
    driver = Driver(small(1))
    driver.submit("a", "a1")
    assert driver.flow("a").state == "idle"
    refused(driver, "b")
    driver.succeed(driver.dispatches[0])
    assert driver.submit("b", "b1").dispatches


def test_who_waits_for_its_time_is_not_forgotten() -> None:
    driver = Driver(small(1))
    driver.submit("a", "a1", not_before_ms=START_MS + 50)
    refused(driver, "b")
    driver.step(make_cancel("a", "a1"))
    assert driver.submit("b", "b1").dispatches


def test_who_is_blocked_is_not_forgotten() -> None:
    rules = {"a": TenantRules(paused=True)}
    driver = Driver(small(1))
    driver.submit("a", "a1", not_before_ms=START_MS + 50)
    driver.set_policy(small(1, make_policy(rules=rules)))
    driver.step(after_ms=50)
    refused(driver, "b")


def test_who_has_a_revoked_attempt_is_not_forgotten() -> None:
    driver = Driver(small(1))
    (dispatch,) = driver.submit("a", "a1").dispatches
    driver.step(make_cancel("a", "a1"))
    refused(driver, "b")
    driver.succeed(dispatch)
    assert driver.submit("b", "b1").dispatches


def test_who_may_yet_get_a_bill_is_not_forgotten() -> None:
    """The account of a lost attempt stays open for as long as the id of its run is remembered."""
    leases = Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=100, max_attempts=1)
    driver = Driver(small(1, make_policy(leases=leases, memory=Memory(ended_ms=1_000))))
    (dispatch,) = driver.submit("a", "a1").dispatches
    driver.step(make_report(dispatch, HEARTBEAT, 100))
    driver.step(after_ms=100)
    refused(driver, "b")
    driver.take_over()
    refused(driver, "b")
    driver.step(after_ms=1_001)
    assert driver.submit("b", "b1").dispatches


def test_a_flow_is_forgotten_alone_and_its_tenant_with_the_last() -> None:
    driver = Driver(small(2, make_policy(classes=("high", "low"))))
    driver.succeed(*driver.submit("a", "a1", class_="high").dispatches)
    driver.succeed(*driver.submit("a", "a2", class_="low").dispatches)
    driver.submit("b", "b1", class_="low")
    assert [(flow.class_, flow.tenant) for flow in driver.shard.snapshot().flows] == [("low", "a"), ("low", "b")]
    driver.submit("c", "c1", class_="low")
    assert set(driver.shard._state.tenants) == {"b", "c"}
    driver.take_over()  # the ring of `high` has no flow and keeps its row
    assert ring(driver, "high").past_ended == 1


def test_who_files_in_another_class_may_take_its_own_place() -> None:
    driver = Driver(small(1, make_policy(classes=("high", "low"))))
    driver.succeed(*driver.submit("a", "a1", class_="high").dispatches)
    assert driver.submit("a", "a2", class_="low").dispatches
    assert [(flow.class_, flow.tenant) for flow in driver.shard.snapshot().flows] == [("low", "a")]


def test_a_smaller_limit_is_met_by_and_by() -> None:
    driver = Driver(small(100))
    serve(driver, *[f"t{number:02}" for number in range(30)])
    driver.set_policy(small(5))
    counts = []
    for number in range(5):
        serve(driver, f"new{number}")
        counts.append(len(known(driver)))
    assert counts == [31 - MAX_FORGOTTEN, 24 - MAX_FORGOTTEN, 17 - MAX_FORGOTTEN, 5, 5]


def test_names_that_take_turns_gain_nothing() -> None:
    """Two names share the only place left, each forgotten for the other: together they get one share."""
    driver = Driver(small(3, make_policy(runs=1, quantum=100)))
    driver.submit("a", *[f"a{number}" for number in range(30)])
    driver.submit("b", *[f"b{number}" for number in range(30)])
    for number in range(60):  # whenever something ends, the name that is not known files a run
        ended = make_report(driver.dispatches[-1], tokens=100)
        name = "y" if "x" in known(driver) else "x"
        driver.step(ended, *driver.requests(name, [f"x{number}"]))
    served = Counter(run_id[0] for run_id in driver.served())
    assert served["a"] + served["b"] + served["x"] == 61
    assert abs(served["a"] - served["b"]) <= 1
    assert 10 < served["x"] <= served["a"] + 1


def test_a_loaded_shard_forgets_the_same_ones() -> None:
    driver = Driver(small(6))
    serve(driver, *"abcdef")
    serve(driver, "b", tokens=250)
    serve(driver, "c")
    twin = Shard.load(0, 1, map(plain, reversed(driver.rows.values())))
    for number in range(12):
        (request,) = driver.requests(f"n{number}", ["r"])
        effects = driver.step(request)
        assert said(twin.step([request], driver.now_ms)) == said(effects)
        report = make_report(driver.dispatches[-1], tokens=100)
        assert said(driver.step(report)) == said(twin.step([report], driver.now_ms))


def test_a_member_of_a_group_that_owes_is_kept_for_good() -> None:
    """The balance of a member that is idle stands still: the others of the group earn instead."""
    rules = {"a": TenantRules(group="g"), "b": TenantRules(group="g")}
    driver = Driver(small(3, replace(make_policy(rules=rules), groups={"g": 1})))
    serve(driver, "a", tokens=150)
    serve(driver, "b", "c", "d", "c")
    assert known(driver) == ["a", "c", "d"]
    for number in range(20):
        serve(driver, f"n{number}")
        assert "a" in known(driver)


def test_what_is_out_of_date_does_not_pile_up() -> None:
    driver = Driver(small(3))
    serve(driver, "a", "b", "c", "d")
    state = driver.shard._state
    sizes = []
    for number in range(1_200):
        (request,) = driver.requests("d", [f"x{number}"])
        (dispatch,) = driver.shard.step([request], START_MS).dispatches
        driver.shard.step([make_report(dispatch, tokens=100)], START_MS)
        sizes.append(len(state.resting) if state.resting is not None else 0)
    assert max(sizes) > 1_000
    assert sizes[-1] == 0  # thrown away; another is made when it is needed
    assert driver.shard.step(driver.requests("e", ["e1"]), START_MS).dispatches
    assert len(state.tenants) == 3


def test_a_debt_is_over_when_the_cursor_has_passed_not_a_round_later() -> None:
    """Also if a newcomer has been refused in that round: a shard that was loaded would not know of that."""
    driver = Driver(small(3, make_policy(runs=1)))
    driver.step(*driver.requests("a", ["a1", "a2"]), *driver.requests("owes", ["o1"]))
    driver.submit("c", "c1", "c2")  # from round 2 on
    driver.succeed(driver.dispatches[-1])
    driver.succeed(driver.dispatches[-1], tokens=150)
    assert (driver.served()[-1], ring(driver).round) == ("a2", 2)
    refused(driver, "d")
    driver.succeed(driver.dispatches[-1])
    assert (driver.served()[-1], ring(driver).round) == ("c1", 2)
    assert driver.submit("d", "d1").changed["flow", "default", "owes"] is None
