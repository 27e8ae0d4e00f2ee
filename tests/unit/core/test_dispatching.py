"""What a dispatch says, does and writes, and how many fit a step."""

from __future__ import annotations

import pytest

from streams.core import dispatching
from streams.core.effects import Dispatch
from streams.core.policy import TenantRules
from streams.core.records import FlightRecord, RunRecord
from streams.core.sizes import NAME_WEIGHT
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.compiled import interpreted, patched
from tests.drivers import START_MS, Driver


def test_a_dispatch_carries_all_a_worker_needs() -> None:
    driver = Driver(make_policy(classes=("high", "low")))
    effects = driver.submit(
        "a",
        "r1",
        cost=60,
        class_="low",
        workflow="report",
        deadline_ms=START_MS + 500,
        lease_ms=900,
        submitted_ms=77,
        body=b"payload",
    )
    assert effects.dispatches == [
        Dispatch(
            seq=1,
            tenant="a",
            run_id="r1",
            workflow="report",
            class_="low",
            attempt=1,
            estimate=60,
            lease_ms=900,
            deadline_ms=START_MS + 500,
            body=b"payload",
            submitted_ms=77,
            round=1,
            deficit_before=100,
            deficit_after=40,
        )
    ]
    assert effects.counts == {"accepted": 1, "dispatched": 1}


def test_an_attempt_in_flight_has_its_row_and_the_run_keeps_its_own() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", cost=60, workflow="report", lease_ms=900, body=b"payload")
    assert driver.rows["flight", "a", "r1", "1"] == FlightRecord(
        tenant="a",
        run_id="r1",
        class_="default",
        workflow="report",
        attempt=1,
        tries=1,
        seq=1,
        dispatched_ms=START_MS,
        estimate=60,
        charged=60,
        reported=0,
        expires_ms=START_MS + 900,
        lease_ms=900,
    )
    assert isinstance(driver.rows["run", "a", "r1"], RunRecord)


def test_dispatching_a_waiting_run_does_not_write_its_row_again() -> None:
    """The row holds the payload, which may be large: it is written once."""
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "r1", "r2", body=b"x" * 1_000)
    effects = driver.succeed(driver.dispatches[0])
    assert [dispatch.run_id for dispatch in effects.dispatches] == ["r2"]
    assert ("run", "a", "r2") not in effects.changed


def test_the_policy_bounds_the_lease() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", lease_ms=LONG_MS * 5)
    assert driver.dispatches[0].lease_ms == LONG_MS


def test_dispatches_and_revokes_share_one_sequence_without_gaps() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", "r2")
    effects = driver.step(make_cancel("a", "r1"))
    driver.submit("a", "r3")
    assert [dispatch.seq for dispatch in driver.dispatches] == [1, 2, 4]
    assert [revoke.seq for revoke in effects.revokes] == [3]


def test_attempts_are_numbered_and_never_go_back() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1")
    driver.step(make_report(driver.dispatches[0], "returned"))
    driver.step(make_report(driver.dispatches[1], "failed", retryable=True))
    assert [dispatch.attempt for dispatch in driver.dispatches] == [1, 2, 3]
    flight = driver.rows["flight", "a", "r1", "3"]
    assert isinstance(flight, FlightRecord)
    assert flight.tries == 2  # the returned attempt does not count


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "MAX_DISPATCHES", 3)


@interpreted
@pytest.mark.usefixtures("small_steps")
def test_a_step_hands_out_so_many_and_asks_for_another_at_once() -> None:
    driver = Driver(make_policy(runs=None, tokens=10**9, quantum=10**6))
    driver.submit("a", *[f"r{number}" for number in range(7)])
    assert len(driver.dispatches) == 3
    assert driver.shard.next_timer_ms() == driver.now_ms
    driver.step()
    driver.step()
    assert driver.served() == [f"r{number}" for number in range(7)]
    assert driver.shard.next_timer_ms() != driver.now_ms


@interpreted
@pytest.mark.usefixtures("small_steps")
def test_a_visit_that_has_begun_when_the_step_is_full_is_written() -> None:
    """Else a takeover right after it would find a visit without the quantum that began it."""
    driver = Driver(make_policy(runs=1, quantum=300))
    driver.submit("blocker", "first")
    driver.step(*driver.requests("a", ["a1", "a2", "a3"]), *driver.requests("b", ["b1"]))
    effects = driver.set_policy(make_policy(runs=9, quantum=300))
    assert [dispatch.run_id for dispatch in effects.dispatches] == ["a1", "a2", "a3"]
    assert driver.flow_row("b").deficit == 300
    driver.take_over()
    assert driver.served() == ["first", "a1", "a2", "a3", "b1"]


def test_a_head_that_waits_for_room_is_written_once_and_not_at_every_step() -> None:
    driver = Driver(make_policy(runs=None, tokens=100, quantum=1_000))
    driver.submit("a", "a1", cost=60)
    first = driver.submit("b", "b1", cost=60)
    assert ("flow", "default", "b") in first.changed
    assert set(driver.step().changed) == {("shard",)}


def test_a_window_of_a_shard_that_shares_it() -> None:
    driver = Driver(make_policy(runs=5), shard=1, shards=2)
    driver.submit("a", *[f"r{number}" for number in range(9)])
    assert len(driver.dispatches) == 2


def test_a_dispatch_counts_against_the_caps_of_its_tenant_in_every_class() -> None:
    rules = {"a": TenantRules(max_runs_in_flight=1)}
    driver = Driver(make_policy(classes=("high", "low"), rules=rules))
    driver.step(
        *driver.requests("a", ["low1"], class_="low"),
        *driver.requests("a", ["high1"], class_="high"),
        *driver.requests("b", ["low2"], class_="low"),
    )
    assert driver.served() == ["high1", "low2"]
    assert driver.flow("a", "low").state == "blocked"
    driver.succeed(driver.dispatches[0])
    assert driver.served()[2:] == ["low1"]


def test_a_step_hands_out_so_many_bytes_of_payloads_and_names() -> None:
    """A window of 2,000 places and runs of a megabyte would else make a transaction of 2 GB."""
    driver = Driver(make_policy(runs=None, tokens=10**9, quantum=10**6))
    with patched(dispatching, "MAX_DISPATCHED_BYTES", 2 * (100 + 10 * NAME_WEIGHT) + 1):
        driver.submit("a", *[f"r{number}" for number in range(7)], body=bytes(100))
        numbers = [len(driver.dispatches)]
        while driver.shard.next_timer_ms() == driver.now_ms:
            numbers.append(len(driver.step().dispatches))
    assert numbers == [3, 3, 1]
    assert driver.served() == [f"r{number}" for number in range(7)]
