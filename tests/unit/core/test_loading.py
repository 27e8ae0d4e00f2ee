"""From rows to a living shard, and what rows can't be believed."""

from __future__ import annotations

import random

import pytest

from streams.core.records import FlightRecord, Key, PolicyRecord, Record, RunRecord, ShardRecord
from streams.core.shard import Shard
from tests.assertions import plain, rows_of
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver


@pytest.fixture
def lived() -> Driver:
    """A shard with something of everything: queued, delayed, retried, lost, in flight, revoked, ended, a debt."""
    driver = Driver(make_policy(runs=4, classes=("high", "low")))
    driver.submit("a", "done", "retried", "revoked")
    driver.step(
        make_report(driver.dispatches[0], "succeeded", 900),
        make_report(driver.dispatches[1], "failed", 50, retryable=True),
        make_cancel("a", "revoked"),
    )
    driver.submit("b", "lost", class_="low", lease_ms=10)
    driver.step(after_ms=10)
    driver.submit("b", "delayed", not_before_ms=START_MS + 10_000)
    driver.submit("c", *[f"c{number}" for number in range(6)], class_="low", deadline_ms=START_MS + 90_000)
    return driver


def test_a_loaded_shard_has_the_same_rows_in_whatever_order_they_come(lived: Driver) -> None:
    rows = list(lived.rows.values())
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        loaded = Shard.load(0, 1, map(plain, rows))
        assert rows_of(loaded) == lived.rows
        assert loaded.snapshot() == lived.shard.snapshot()
        assert loaded.next_timer_ms() == lived.shard.next_timer_ms()


def test_living_forms_are_as_good_as_records(lived: Driver) -> None:
    loaded = Shard.load(0, 1, list(lived.shard.dump()))
    assert rows_of(loaded) == lived.rows


def test_the_order_of_a_dump_depends_on_the_records_alone(lived: Driver) -> None:
    loaded = Shard.load(0, 1, map(plain, reversed(lived.rows.values())))
    assert [plain(record) for record in loaded.dump()] == [plain(record) for record in lived.shard.dump()]


def test_no_rows_are_a_fresh_shard() -> None:
    assert rows_of(Shard.load(2, 5, [])) == {}


def test_an_attempt_in_flight_is_counted_on_from(lived: Driver) -> None:
    flights = [row for row in lived.rows.values() if isinstance(row, FlightRecord)]
    assert {(flight.run_id, flight.attempt) for flight in flights} >= {("retried", 2), ("revoked", 1)}
    lived.take_over()
    lived.step(
        *(make_report(each, "failed", 5, retryable=True) for each in lived.dispatches if each.run_id == "retried")
    )
    assert [each.attempt for each in lived.dispatches if each.run_id == "retried"] == [1, 2, 3]


def without(rows: dict[Key, Record], *keys: Key) -> list[Record]:
    assert all(key in rows for key in keys)
    return [plain(row) for key, row in rows.items() if key not in keys]


@pytest.mark.parametrize("owner", [(1, 2), (0, 2), (1, 1)])
def test_rows_of_another_shard_are_refused(lived: Driver, owner: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=rf"those of shard 0 of 1, not of shard {owner[0]} of {owner[1]}"):
        Shard.load(*owner, map(plain, lived.rows.values()))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (("ring", "low"), "flow 'b' is in class 'low', whose ring has no row"),
        (("flow", "low", "c"), "run 'c0' of tenant 'c' belongs to a flow that has no row"),
        (("run", "a", "retried"), "run 'retried' of tenant 'a' has attempts but no row of its own"),
        (("flow", "high", "b"), "run 'delayed' of tenant 'b' belongs to a flow that has no row"),
    ],
)
def test_rows_that_need_a_row_that_is_not_there_are_refused(lived: Driver, missing: Key, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shard.load(0, 1, without(lived.rows, missing))


def test_an_attempt_of_a_run_without_a_row_is_refused() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1")
    with pytest.raises(ValueError, match="run 'r1' of tenant 'a' has attempts but no row"):
        Shard.load(0, 1, without(driver.rows, ("run", "a", "r1")))


def test_a_revoked_attempt_without_its_flow_is_refused() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1")
    driver.step(make_cancel("a", "r1"))
    with pytest.raises(ValueError, match="run 'r1' of tenant 'a' belongs to a flow that has no row"):
        Shard.load(0, 1, without(driver.rows, ("flow", "default", "a")))


def test_a_shard_without_a_policy_row_is_under_the_built_in_one() -> None:
    driver = Driver()
    driver.submit("a", "r1")
    assert not any(isinstance(row, PolicyRecord) for row in driver.rows.values())
    driver.take_over()
    assert driver.shard.policy_version == -1


def test_a_half_done_visit_goes_on_where_it_was() -> None:
    driver = Driver(make_policy(runs=1, quantum=300))
    driver.step(*driver.requests("a", ["a1", "a2", "a3", "a4"]), *driver.requests("b", ["b1"]))
    driver.succeed(driver.dispatches[0])
    driver.take_over()
    assert driver.serve_all() == ["a1", "a2", "a3", "b1", "a4"]


def test_a_shard_that_has_only_its_own_row() -> None:
    loaded = Shard.load(0, 1, [ShardRecord(shard=0, shards=1, step=9, seq=4)])
    assert loaded.step([], START_MS).step == 10


def test_runs_share_the_name_of_their_workflow() -> None:
    """Each row brings a copy of its own: for a million queued runs 60 MB."""
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", "a3")
    rows = [plain(row) for row in driver.rows.values()]
    for row in rows:
        if isinstance(row, RunRecord):
            row.workflow = "".join(row.workflow)
    loaded = Shard.load(0, 1, rows)
    assert len({id(row.workflow) for row in loaded.dump() if isinstance(row, RunRecord)}) == 1
