"""Attempts that were given up and are heard of after all, whatever has become of their run meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.core import counts, reasons
from streams.core.effects import Effects, Settlement
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.core.lost import MAX_OF_PAGE, MAX_OF_RUN
from streams.core.policy import Leases, Memory
from streams.core.records import EndedRecord, RetryRecord
from tests.assertions import assert_drained, rows_of
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import Driver

LEASES = Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=1_000, max_attempts=1, backoff_ms=10)
RULES = make_policy(leases=LEASES, memory=Memory(ended_ms=10_000))


def lost(**fields: Any) -> Driver:
    """A run of 100 tokens whose attempt 1 has owned up to 30 and is given up."""
    driver = Driver(RULES)
    driver.submit("a", "r1", **{"cost": 100} | fields)
    driver.step(make_report(driver.dispatches[0], HEARTBEAT, 30))
    driver.step(after_ms=LEASES.lease_ms)
    return driver


def late(driver: Driver, status: str = SUCCEEDED, tokens: int | None = 120) -> Effects:
    return driver.step(make_report(driver.dispatches[0], status, tokens))


def accounts(driver: Driver) -> list[tuple[str, str, str, int, int]]:
    return [entry for row in driver.rows.values() if isinstance(row, EndedRecord) for entry in row.lost]


def billed(driver: Driver, status: str = SUCCEEDED) -> None:
    """The late report is charged, once: 90 tokens more than before."""
    before = driver.flow("a").actual
    assert len(accounts(driver)) == 1
    effects = late(driver, status)
    assert effects.settlements == [Settlement("a", "r1", 1, status, 30, 120, reported=True)]
    assert effects.counts == {counts.LATE: 1}
    assert driver.flow("a").actual == before + 90
    assert accounts(driver) == []
    again = late(driver, status)
    assert (again.settlements, again.counts) == ([], {counts.UNKNOWN: 1})
    assert set(again.changed) == {("shard",)}
    assert_drained(driver.shard)


@pytest.mark.parametrize("status", [SUCCEEDED, FAILED])
def test_a_dead_lettered_run_is_billed_once(status: str) -> None:
    driver = lost()
    assert accounts(driver) == [("a", "r1", "default", 1, 30)]
    billed(driver, status)


def test_a_cancelled_run_is_billed_once() -> None:
    driver = lost(max_attempts=3)
    driver.step(make_cancel("a", "r1"))
    billed(driver)


def test_a_run_that_another_attempt_has_finished_is_billed_once() -> None:
    driver = lost(max_attempts=3)
    driver.step(after_ms=10)
    driver.succeed(driver.dispatches[1], tokens=80)
    billed(driver)
    assert driver.flow("a").actual == 200


def test_a_run_past_its_deadline_is_billed_once() -> None:
    driver = lost(max_attempts=3, deadline_ms=1_000_105)
    assert driver.step(after_ms=5).counts == {counts.EXPIRED: 1}
    billed(driver)


@pytest.mark.parametrize("memory", [Memory(ended_ms=10_000), Memory(ended_ms=50), Memory(ended_runs=0)])
def test_an_attempt_that_is_lost_after_its_run_was_cancelled_is_billed_once(memory: Memory) -> None:
    """Else who cancels as soon as a run starts, and is silent for a lease, gets it for nothing."""
    driver = Driver(replace(RULES, memory=memory))
    driver.submit("a", "r1", cost=100)
    driver.step(make_report(driver.dispatches[0], HEARTBEAT, 30), make_cancel("a", "r1"))
    assert driver.step(after_ms=LEASES.lease_ms - 1).settlements == []
    assert driver.step(after_ms=1).settlements == [Settlement("a", "r1", 1, "lost", 100, 30, reported=True)]
    if memory.ended_runs:
        driver.take_over()
        assert accounts(driver) == [("a", "r1", "default", 1, 30)]
        assert driver.submit("a", "r1").rejections[0].reason == reasons.DUPLICATE
        billed(driver)
    else:
        assert accounts(driver) == []
        assert_drained(driver.shard)


def test_a_page_that_is_full_takes_no_more_accounts() -> None:
    driver = Driver(make_policy(runs=None, tokens=10**9, leases=LEASES), doubted=False)
    run_ids = [f"r{number}" for number in range(MAX_OF_PAGE + 1)]
    driver.submit("a", *run_ids)
    driver.step(*(make_cancel("a", run_id) for run_id in run_ids))
    driver.step(after_ms=LEASES.lease_ms)
    (page,) = (record for record in driver.shard.dump() if isinstance(record, EndedRecord))
    assert (len(page.runs), len(page.lost)) == (MAX_OF_PAGE + 1, MAX_OF_PAGE)


def test_accounts_survive_a_takeover() -> None:
    driver = lost()
    driver.take_over()
    billed(driver)


def test_an_account_needs_its_flow() -> None:
    driver = lost()
    rows = [row for key, row in rows_of(driver.shard).items() if key[0] != "flow"]
    with pytest.raises(ValueError, match="run 'r1' of tenant 'a' belongs to a flow that has no row"):
        Driver().shard.load(0, 1, rows)


def test_the_account_closes_when_the_run_is_forgotten() -> None:
    driver = lost()
    driver.step(after_ms=10_001)
    assert accounts(driver) == []
    effects = late(driver)
    assert (effects.settlements, effects.counts) == ([], {counts.UNKNOWN: 1})
    assert driver.flow("a").actual == 30


@pytest.mark.parametrize("status", [STARTED, HEARTBEAT])
def test_a_late_sign_of_life_is_only_counted(status: str) -> None:
    driver = lost()
    effects = late(driver, status, 900)
    assert effects.counts == {counts.LATE: 1}
    assert set(effects.changed) == {("shard",)}
    billed(driver)


@pytest.mark.parametrize(("status", "tokens"), [(RETURNED, 500), (SUCCEEDED, None)])
def test_a_late_report_that_names_no_cost_closes_the_account_at_its_charge(status: str, tokens: int | None) -> None:
    driver = lost()
    effects = late(driver, status, tokens)
    assert (effects.settlements, effects.counts) == ([], {counts.LATE: 1})
    assert accounts(driver) == []
    assert driver.flow("a").actual == 30


def test_a_late_bill_delays_what_the_tenant_has_waiting() -> None:
    """The deficit of a flow that is in the ring has changed: so has the round of its next visit."""
    policy = make_policy(runs=1, leases=LEASES)
    driver = Driver(policy)
    runs_of_b = driver.requests("b", [f"b{number}" for number in range(9)], lease_ms=1_000)
    driver.step(*driver.requests("a", ["r1"]), *runs_of_b)
    driver.step(make_report(driver.dispatches[0], HEARTBEAT, 100))
    driver.submit("a", "r2", "r3", lease_ms=1_000)
    driver.step(after_ms=LEASES.lease_ms)
    late(driver, tokens=400)
    for _ in range(5):
        driver.succeed(driver.dispatches[-1])
    assert driver.served()[:6] == ["r1", "b0", "b1", "b2", "b3", "r2"]


def test_the_other_attempts_of_a_late_success_stay_open() -> None:
    driver = lost(max_attempts=9)
    driver.step(after_ms=10)
    driver.step(after_ms=LEASES.lease_ms)  # attempt 2 is lost in silence
    late(driver)
    assert accounts(driver) == [("a", "r1", "default", 2, 0)]
    driver.succeed(driver.dispatches[1], tokens=50)
    assert driver.flow("a").actual == 170
    assert_drained(driver.shard)


def test_a_run_remembers_its_latest_attempts_only() -> None:
    """Attempts that no worker was heard of in do not count against `max_attempts`: there may be any number."""
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1", max_attempts=1)
    for _ in range(MAX_OF_RUN + 10):
        driver.step(after_ms=LEASES.lease_ms)
        driver.step(after_ms=10)
    row = driver.rows["retry", "a", "r1"]
    assert isinstance(row, RetryRecord)
    assert sorted(row.lost) == list(range(11, MAX_OF_RUN + 11))
    assert late(driver).counts == {counts.UNKNOWN: 1}


def test_a_page_has_room_for_so_many_accounts_and_the_latest_of_a_run_come_first() -> None:
    runs = MAX_OF_PAGE // MAX_OF_RUN + 1
    driver = Driver(make_policy(runs=None, tokens=10**9, leases=LEASES), doubted=False)
    driver.submit("a", *[f"r{number:02}" for number in range(runs)])
    for _ in range(MAX_OF_RUN):
        driver.step(after_ms=LEASES.lease_ms)
        driver.step(after_ms=10)
    driver.step(*(make_cancel("a", f"r{number:02}") for number in range(runs)))
    pages = [record for record in driver.shard.dump() if isinstance(record, EndedRecord)]
    (page,) = pages
    assert len(page.lost) == MAX_OF_PAGE
    room = MAX_OF_PAGE % MAX_OF_RUN
    last = [attempt for _, run_id, _, attempt, _ in page.lost if run_id == f"r{runs - 1:02}"]
    assert last == list(range(MAX_OF_RUN - room + 1, MAX_OF_RUN + 1))
    driver.step(make_cancel("a", "r00"))
