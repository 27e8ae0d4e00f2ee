"""What time does by itself."""

from __future__ import annotations

import pytest

from streams.core import counts, endings, expiry, reasons
from streams.core.expiry import MAX_ENDED
from streams.core.inputs import HEARTBEAT, RETURNED
from streams.core.policy import Leases, Limits, Memory
from streams.core.records import EndedRecord
from streams.core.sizes import NAME_WEIGHT
from tests.builders import make_cancel, make_policy, make_report
from tests.compiled import patched
from tests.drivers import START_MS, Driver

LEASES = Leases(lease_ms=100, max_lease_ms=1_000, backoff_ms=10)


def test_nothing_is_due_where_nothing_waits() -> None:
    assert Driver(make_policy()).shard.next_timer_ms() is None


def test_the_earliest_of_leases_and_waits_is_due() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "later", not_before_ms=START_MS + 300)
    assert driver.shard.next_timer_ms() == START_MS + 300
    driver.submit("a", "now")
    assert driver.shard.next_timer_ms() == START_MS + 100
    driver.submit("a", "sooner", not_before_ms=START_MS + 50)
    assert driver.shard.next_timer_ms() == START_MS + 50


def test_a_delayed_run_waits_outside_the_ring_until_its_time() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", not_before_ms=START_MS + 50)
    assert driver.flow("a").state == "idle"
    assert driver.shard.snapshot().shard.queued_runs == 1
    assert driver.step(after_ms=49).dispatches == []
    assert [dispatch.run_id for dispatch in driver.step(after_ms=1).dispatches] == ["r1"]


def test_a_delayed_run_goes_to_its_place_by_position() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "first")
    driver.submit("a", "delayed", not_before_ms=START_MS + 50)
    driver.submit("a", "last")
    driver.step(after_ms=50)
    assert driver.serve_all() == ["first", "delayed", "last"]


def test_a_time_that_has_passed_is_no_delay() -> None:
    driver = Driver(make_policy())
    assert driver.submit("a", "r1", not_before_ms=START_MS).dispatches


def test_a_run_still_queued_at_its_deadline_is_dropped_with_a_reason() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "r1", deadline_ms=START_MS + 50, body=b"payload")
    assert driver.shard.next_timer_ms() == START_MS + 50
    effects = driver.step(after_ms=60)
    (rejection,) = effects.rejections
    assert (rejection.reason, rejection.limit, rejection.value) == (reasons.EXPIRED, START_MS + 50, START_MS + 60)
    assert (rejection.retry_after_ms, rejection.body) == (None, b"payload")
    assert effects.counts == {counts.EXPIRED: 1}
    assert ("run", "a", "r1") not in driver.rows


def test_a_delayed_run_expires_too() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", not_before_ms=START_MS + 500, deadline_ms=START_MS + 50)
    assert driver.shard.next_timer_ms() == START_MS + 50
    assert driver.step(after_ms=50).counts == {counts.EXPIRED: 1}


def test_a_delayed_run_keeps_its_deadline_once_it_is_queued() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "r1", not_before_ms=START_MS + 50, deadline_ms=START_MS + 90)
    driver.step(after_ms=50)
    assert driver.shard.next_timer_ms() == START_MS + 90
    assert driver.step(after_ms=40).counts == {counts.EXPIRED: 1}


def test_a_run_in_flight_does_not_expire_but_its_retry_does() -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1", deadline_ms=START_MS + 50)
    assert driver.step(after_ms=60).counts == {}
    effects = driver.step(make_report(driver.dispatches[0], RETURNED))
    assert effects.counts == {counts.RETURNED: 1, counts.EXPIRED: 1}


def test_a_report_that_comes_with_the_end_of_its_lease_is_in_time() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1")
    effects = driver.succeed(driver.dispatches[0], after_ms=100)
    assert effects.counts == {counts.SUCCEEDED: 1}


def test_leases_run_out_in_order() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1", lease_ms=200)
    driver.submit("a", "r2", lease_ms=100)
    assert [each.run_id for each in driver.step(after_ms=100).settlements] == ["r2"]
    assert [each.run_id for each in driver.step(after_ms=100).settlements] == ["r1"]


def test_the_time_without_an_owner_expires_nobody() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1")
    driver.step(after_ms=40)
    effects = driver.take_over(after_ms=10_000)
    assert not effects.counts
    assert driver.shard.next_timer_ms() == driver.now_ms + 60
    assert driver.step(after_ms=60).counts == {counts.LOST: 1, counts.RETRIED: 1}


def ended_rows(driver: Driver) -> list[list[tuple[str, str]]]:
    return [row.runs for row in driver.rows.values() if isinstance(row, EndedRecord)]


def end(driver: Driver, *run_ids: str, after_ms: int = 0) -> None:
    driver.submit("a", *run_ids, after_ms=after_ms)
    driver.succeed(*driver.dispatches[-len(run_ids) :])


def test_runs_that_ended_in_one_step_share_a_page() -> None:
    driver = Driver(make_policy())
    end(driver, "r1", "r2")
    end(driver, "r3")
    assert ended_rows(driver) == [[("a", "r1"), ("a", "r2")], [("a", "r3")]]


def test_ended_runs_are_forgotten_after_their_time() -> None:
    driver = Driver(make_policy(memory=Memory(ended_ms=100)))
    end(driver, "r1")
    end(driver, "r2", after_ms=50)
    driver.step(after_ms=50)
    assert ended_rows(driver) == [[("a", "r1")], [("a", "r2")]]
    driver.step(after_ms=1)
    assert ended_rows(driver) == [[("a", "r2")]]
    assert driver.submit("a", "r1").dispatches


@pytest.mark.parametrize(("most", "left"), [(3, 3), (2, 2), (1, 1), (0, 0)])
def test_the_oldest_are_forgotten_first_above_a_number(most: int, left: int) -> None:
    driver = Driver(make_policy(memory=Memory(ended_runs=most)))
    for run_id in ("r1", "r2", "r3"):
        end(driver, run_id)
    assert ended_rows(driver) == [[("a", run_id)] for run_id in ("r1", "r2", "r3")[3 - left :]]


def test_many_deadlines_at_once_take_many_steps_and_nothing_is_dispatched_past_its_own() -> None:
    """Without the bound, 200,000 runs with one deadline would make a step that no topic takes, for ever."""
    driver = Driver(make_policy(runs=1), doubted=False)
    driver.submit("b", "blocker")
    number = 2 * MAX_ENDED + 10
    driver.submit("a", *[f"r{each}" for each in range(number)], deadline_ms=START_MS + 50)
    (blocker,) = driver.dispatches
    driver.submit("b", "b1")
    first = driver.step(make_report(blocker, tokens=1), after_ms=60)
    assert (len(first.rejections), [each.run_id for each in first.dispatches]) == (MAX_ENDED, ["b1"])
    assert driver.shard.next_timer_ms() == driver.now_ms
    second, third = driver.step(), driver.step()
    assert (len(second.rejections), len(third.rejections)) == (MAX_ENDED, 10)
    assert driver.shard.snapshot().shard.queued_runs == 0
    assert driver.served() == ["blocker", "b1"]


def test_many_leases_at_once_take_many_steps() -> None:
    number = MAX_ENDED + 10
    driver = Driver(make_policy(runs=None, tokens=10**9, leases=LEASES), doubted=False)
    driver.submit("a", *[f"r{each}" for each in range(number)])
    driver.step()
    assert len(driver.dispatches) == number
    first = driver.step(after_ms=100)
    assert len(first.settlements) == MAX_ENDED
    assert len(driver.step().settlements) == 10


def test_a_flood_of_short_deadlines_keeps_nobody_from_being_served() -> None:
    """As many as a step may reject, in every step: others are dispatched all the same."""
    driver = Driver(make_policy(runs=1))
    driver.submit("calm", *[f"c{each}" for each in range(6)])
    with patched(expiry, "MAX_ENDED", 3):
        for number in range(1, 6):
            flood = driver.requests("flood", [f"f{number}-{each}" for each in range(8)], deadline_ms=driver.now_ms + 1)
            done = make_report(driver.dispatches[-1], tokens=driver.dispatches[-1].estimate)
            driver.step(*flood, after_ms=0)
            driver.step(done, after_ms=1)
        assert driver.served() == [f"c{number}" for number in range(6)]
        view = driver.shard.snapshot().shard
        assert (view.queued_runs, view.waiting_for) == (13, "step")  # 8 came each time, and 3 + 3 went but the first
        driver.take_over()
        assert driver.shard.next_timer_ms() == driver.now_ms
        assert len(driver.step().rejections) == 3


def test_what_is_overdue_can_be_cancelled_and_can_give_way() -> None:
    policy = make_policy(runs=1, limits=Limits(max_queued_runs=4, overload="drop_longest"))
    driver = Driver(policy)
    driver.submit("b", "blocker")
    driver.submit("a", *[f"r{each}" for each in range(4)], deadline_ms=START_MS + 50, not_before_ms=START_MS + 90)
    with patched(expiry, "MAX_ENDED", 1):
        assert [each.run_id for each in driver.step(after_ms=60).rejections] == ["r0"]
        cancelled = driver.step(make_cancel("a", "r1"))
        assert [each.run_id for each in cancelled.rejections] == ["r2"]
        driver.submit("c", "c1", "c2", "c3", "c4", cost=1)
    assert driver.shard.snapshot().shard.queued_runs == 4
    assert driver.serve_all() == ["blocker", "c1", "c2", "c3", "c4"]


def test_large_payloads_take_many_steps() -> None:
    """Each is written to the rejected topic: 2,000 of a megabyte would make a step that no broker takes in time."""
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", *[f"r{each}" for each in range(7)], deadline_ms=START_MS + 50, body=bytes(100))
    with patched(expiry, "MAX_ENDED_BYTES", 2 * (100 + 10 * NAME_WEIGHT) + 1):
        numbers = [len(driver.step(after_ms=each).rejections) for each in (60, 0, 0, 0)]
    assert numbers == [3, 3, 1, 0]


def test_pages_are_forgotten_so_many_in_a_step() -> None:
    driver = Driver(make_policy(memory=Memory(ended_ms=100)))
    for number in range(7):
        end(driver, f"r{number}")
    with patched(endings, "MAX_PAGES", 3):
        left = []
        for after_ms in (101, 0, 0):
            driver.step(after_ms=after_ms)
            left.append(len(ended_rows(driver)))
    assert left == [4, 1, 0]


def test_a_request_cannot_have_a_lease_so_short_that_it_is_never_charged() -> None:
    """A lost attempt is charged what it has owned up to: with a lease of 1 ms that is nothing, and the run is free."""
    policy = make_policy(leases=Leases(lease_ms=60_000, min_lease_ms=5_000))
    driver = Driver(policy)
    (dispatch,) = driver.submit("a", "r1", lease_ms=1, max_attempts=1).dispatches
    assert dispatch.lease_ms == 5_000
    driver.step(make_report(dispatch, HEARTBEAT, tokens=70))
    driver.step(after_ms=4_999)
    assert driver.succeed(dispatch, tokens=70).settlements[0].actual == 70


def test_a_policy_may_state_a_shorter_lease_than_requests_may_ask_for() -> None:
    driver = Driver(make_policy(leases=Leases(lease_ms=100, min_lease_ms=5_000)))
    assert driver.submit("a", "r1", lease_ms=1).dispatches[0].lease_ms == 100
