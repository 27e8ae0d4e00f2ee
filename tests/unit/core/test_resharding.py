"""What becomes of a shard's own things when its tenants move, case by case. That nothing is lost: tests/property."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.core.policy import Leases, Policy, PriorityClass, TenantRules
from streams.core.records import (
    FlightRecord,
    FlowRecord,
    PolicyRecord,
    Record,
    RetryRecord,
    RingRecord,
    RunRecord,
    ShardRecord,
)
from streams.core.resharding import brought_up, reshard
from streams.core.shard import Shard
from streams.core.state import BUILT_IN
from streams.core.stock import CHARGED, LOST, QUEUED, Stock
from tests.assertions import plain
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.drivers import Driver

WHO = {"a": 0, "b": 1, "c": 2, "d": 3}


def home(tenant: str, shards: int) -> int:
    return WHO[tenant] % shards


def records_of(driver: Driver) -> list[Record]:
    return [plain(each) for each in driver.shard.dump()]


def split(driver: Driver, shards: int, policy: Policy) -> list[list[Record]]:
    return reshard([records_of(driver)], shards, PolicyRecord(7, policy), home)


def of(kind: type[Record], records: list[Record]) -> list[Record]:
    return [each for each in records if isinstance(each, kind)]


def test_a_new_shard_counts_from_the_beginning() -> None:
    """Its inputs from 0, its steps and dispatches from 1; what it is given comes before."""
    policy = make_policy(runs=2)
    driver = Driver(policy)
    driver.submit("a", "r1", "r2", "r3", "r4")
    driver.succeed(driver.dispatches[0])
    (moved,) = split(driver, 1, policy)
    shard = Shard.load(0, 1, moved)
    assert [each.position for each in moved if isinstance(each, RunRecord)] == [-3, -2, -1]
    assert [each.seq for each in moved if isinstance(each, FlightRecord)] == [-1, 0]
    view = shard.snapshot().shard
    assert (view.step, view.seq, view.epoch, view.now_ms, view.policy_version) == (0, 0, 0, driver.now_ms, 7)


def test_a_shard_without_rows_moves_as_well() -> None:
    policy = PolicyRecord(BUILT_IN, Policy())
    moved = reshard([[], []], 3, policy, home)
    assert [of(ShardRecord, own) for own in moved] == [[ShardRecord(shard=number, shards=3)] for number in range(3)]
    assert [len(own) for own in moved] == [1, 1, 1]


def test_a_lease_goes_on_with_what_was_left_of_it() -> None:
    """Neither an earlier outage nor a shard that made its last step later takes anything of it."""
    policy = make_policy(leases=Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=LONG_MS))
    early, late = Driver(policy, shard=0, shards=2), Driver(policy, shard=1, shards=2)
    early.step(after_ms=10)
    early.take_over(after_ms=5_000)
    early.submit("a", "r")
    early.step(after_ms=30)
    late.step(after_ms=90_000)
    (moved,) = reshard([records_of(early), records_of(late)], 1, PolicyRecord(0, policy), home)
    shard = Shard.load(0, 1, moved)
    assert shard.now_ms == late.now_ms
    assert shard.next_timer_ms() == late.now_ms + 70


def test_what_waited_for_its_time_is_queued_when_the_latest_shard_says_so() -> None:
    policy = make_policy(runs=1)
    early, late = Driver(policy, shard=0, shards=2), Driver(policy, shard=1, shards=2)
    early.submit("a", "soon", not_before_ms=early.now_ms + 50, deadline_ms=early.now_ms + 500)
    early.submit("a", "missed", not_before_ms=early.now_ms + 50, deadline_ms=early.now_ms + 60)
    late.step(after_ms=100)
    (moved,) = reshard([records_of(early), records_of(late)], 1, PolicyRecord(0, policy), home)
    driver = Driver()
    driver.shard, driver.now_ms, driver._doubted = Shard.load(0, 1, moved), late.now_ms, False
    effects = driver.step()
    assert [each.run_id for each in effects.dispatches] == ["soon"]
    assert [each.run_id for each in effects.rejections] == ["missed"]


def test_a_visit_under_way_goes_on_and_earns_nothing() -> None:
    policy = make_policy(quantum=300, runs=1)
    driver = Driver(policy)
    driver.submit("a", *(f"a{number}" for number in range(1, 8)))
    driver.submit("b", "b1", "b2")
    assert driver.rows["ring", "default"].visiting  # type: ignore[union-attr] # it is a ring's
    (moved,) = split(driver, 1, policy)
    driver.shard, driver._doubted = Shard.load(0, 1, moved), False
    assert driver.serve_all() == ["a1", "a2", "a3", "a4", "a5", "a6", "b1", "b2", "a7"]


def test_visits_under_way_that_meet_go_on_one_after_the_other_in_the_same_round() -> None:
    policy = make_policy(quantum=300, runs=2)
    drivers = [Driver(policy, shard=number, shards=2) for number in range(2)]
    for driver, tenant in zip(drivers, "ab", strict=True):
        driver.submit(tenant, *(f"{tenant}{number}" for number in range(1, 6)))
    (moved,) = reshard([records_of(each) for each in drivers], 1, PolicyRecord(0, policy), home)
    driver = Driver(doubted=False)
    driver.shard, driver.dispatches = Shard.load(0, 1, moved), [each.dispatches[0] for each in drivers]
    assert driver.serve_all()[2:] == ["a2", "a3", "b2", "b3", "a4", "a5", "b4", "b5"]


def test_members_of_a_group_that_meet_share_its_weight_from_the_next_round_on() -> None:
    rules = {name: TenantRules(group="g") for name in "ab"}
    policy = replace(make_policy(quantum=100, runs=1, rules=rules), groups={"g": 1})
    drivers = [Driver(policy, shard=number, shards=2) for number in range(2)]
    for driver, tenant in zip(drivers, "ab", strict=True):
        driver.submit(tenant, *(f"{tenant}{number}" for number in range(4)))
    (moved,) = reshard([records_of(each) for each in drivers], 1, PolicyRecord(0, policy), home)
    state = brought_up(moved, 0, 1, PolicyRecord(0, policy), drivers[0].now_ms)
    assert [flow.rate for flow in state.rings["default"].flows.values()] == [50, 50]


def test_a_class_takes_along_what_it_is_ahead() -> None:
    """By its flows with work: the sum over the shards stays."""
    classes = (PriorityClass(name="high", weight=1), PriorityClass(name="low", weight=1))
    policy = replace(make_policy(runs=1), classes=classes, between_classes="shares")
    driver = Driver(policy)
    driver.submit("a", "a1", "a2", class_="high", cost=1_000)
    driver.submit("b", "b1", "b2", class_="low")
    driver.submit("c", "c1", class_="low")
    clock = driver.shard._state.record.clock
    ahead = {ring.record.class_: ring.record.tag - clock for ring in driver.shard._state.rings.values()}
    moved = split(driver, 2, policy)
    rings = [each for own in moved for each in own if isinstance(each, RingRecord)]
    assert ahead["high"] != 0
    for name, lead in ahead.items():
        assert sum(each.tag for each in rings if each.class_ == name) == lead


def test_a_run_that_failed_once_takes_that_along() -> None:
    policy = make_policy(runs=1, leases=Leases(lease_ms=30_000, max_attempts=3, backoff_ms=60_000))
    driver = Driver(policy)
    driver.submit("b", "r1")
    driver.step(make_report(driver.dispatches[0], "failed", 40, retryable=True))
    retries = of(RetryRecord, records_of(driver))
    assert [of(RetryRecord, own) for own in split(driver, 2, policy)] == [[], retries]
    assert retries


def test_who_is_alone_in_its_group_earns_what_it_did() -> None:
    policy = replace(make_policy(quantum=100, runs=1, rules={"a": TenantRules(group="g")}), groups={"g": 3})
    driver = Driver(policy)
    driver.submit("a", "a1", "a2", "a3")
    before = next(each for each in records_of(driver) if isinstance(each, RingRecord))
    (moved,) = split(driver, 1, policy)
    state = brought_up(moved, 0, 1, PolicyRecord(0, policy), driver.now_ms)
    assert [flow.rate for flow in state.rings["default"].flows.values()] == [300]
    assert state.rings["default"].record.max_estimate == before.max_estimate


@pytest.mark.parametrize("works_elsewhere", [False, True])
def test_a_class_without_work_keeps_what_it_is_behind_unless_it_meets_itself_at_work(*, works_elsewhere: bool) -> None:
    """At work it keeps no credit, as a class never does."""
    classes = (PriorityClass(name="high", weight=1), PriorityClass(name="low", weight=1))
    policy = replace(make_policy(runs=2), classes=classes, between_classes="shares")
    drivers = [Driver(policy, shard=number, shards=2) for number in range(2)]
    drivers[0].submit("c", "c1", class_="low", cost=1_000)
    drivers[0].submit("a", *(f"a{number}" for number in range(9)), class_="high")
    for number in range(4):
        drivers[0].succeed(drivers[0].dispatches[number], tokens=1)
    if works_elsewhere:
        drivers[1].submit("b", "b1", "b2", "b3", class_="low")
    behind = {ring.record.class_: ring.record.tag for ring in drivers[0].shard._state.rings.values()}
    clock = drivers[0].shard._state.record.clock
    assert behind["low"] < clock
    (moved,) = reshard([records_of(each) for each in drivers], 1, PolicyRecord(0, policy), home)
    (ring,) = (each for each in moved if isinstance(each, RingRecord) and each.class_ == "low")
    assert (ring.tag == behind["low"] - clock) is not works_elsewhere


def test_what_forgotten_flows_have_done_stays_in_the_books() -> None:
    policy = make_policy()
    record = RingRecord(class_="default", next_place=3, past_charged=70, past_dispatched=3, past_ended=2)
    old: list[Record] = [ShardRecord(shard=1, shards=2, step=5, now_ms=9), record]
    moved = reshard([[], old], 4, PolicyRecord(0, policy), home)
    assert [of(RingRecord, own) for own in moved] == [[], [replace(record, next_place=1)], [], []]
    assert [Shard.load(number, 4, own).epoch for number, own in enumerate(moved)] == [0, 0, 0, 0]


def test_a_tenant_on_another_shard_than_its_own_is_refused() -> None:
    driver = Driver(make_policy(), shard=1, shards=2)
    driver.submit("a", "r")
    with pytest.raises(ValueError, match="shard 1 has rows of tenant 'a', whose shard is 0"):
        reshard([[], records_of(driver)], 1, PolicyRecord(0, Policy()), home)


def test_an_account_that_is_open_for_a_lost_attempt_goes_where_its_run_id_goes() -> None:
    policy = make_policy(leases=Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=LONG_MS))
    driver = Driver(policy)
    driver.submit("b", "r")
    driver.step(make_cancel("b", "r"))
    driver.step(after_ms=200)
    _, moved = split(driver, 2, policy)
    stocks = Stock(), Stock()
    stocks[0].add(brought_up(records_of(driver), 0, 1, PolicyRecord(7, policy), driver.now_ms))
    stocks[1].add(brought_up(moved, 1, 2, PolicyRecord(7, policy), driver.now_ms))
    (line,) = (each for each in stocks[0].compare(stocks[1]) if each.what == LOST)
    assert line.equal
    assert line.before == 1
    late = make_report(driver.dispatches[0], tokens=30)
    assert Shard.load(1, 2, moved).step([late], driver.now_ms).settlements[0].actual == 30


def test_a_stock_tells_what_is_missing() -> None:
    policy = PolicyRecord(0, make_policy(runs=1))
    driver = Driver(policy.policy)
    driver.submit("a", "r1", "r2", "r3")
    records = records_of(driver)
    whole, short = Stock(), Stock()
    whole.add(brought_up(records, 0, 1, policy, driver.now_ms))
    kept = [each for each in records if not (isinstance(each, RunRecord) and each.run_id == "r3")]
    for each in kept:
        if isinstance(each, FlowRecord):
            each.charged += 1
    short.add(brought_up(kept, 0, 1, policy, driver.now_ms))
    found = {line.what: line for line in whole.compare(short) if not line.equal}
    assert (found[QUEUED].before, found[QUEUED].after, found[QUEUED].differing) == (2, 1, (("a", "r3"),))
    assert found[CHARGED].after == found[CHARGED].before + 1
    assert all(line.equal for line in whole.compare(whole))


def test_what_is_in_two_shards_is_no_stock() -> None:
    policy = PolicyRecord(0, make_policy())
    driver = Driver(policy.policy)
    driver.submit("a", "r1")
    stock = Stock()
    stock.add(brought_up(records_of(driver), 0, 1, policy, driver.now_ms))
    with pytest.raises(ValueError, match="is in two shards"):
        stock.add(brought_up(records_of(driver), 0, 1, policy, driver.now_ms))
