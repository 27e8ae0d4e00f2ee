"""Runs that Kafka does not take: taken out by name, at no charge, and nobody else is held up."""

from __future__ import annotations

import pytest

from streams.core import counts, reasons, state
from streams.core.inputs import Undeliverable
from streams.core.policy import Leases
from streams.core.shard import Shard
from streams.core.sizes import NAME_WEIGHT
from tests.assertions import assert_drained, rows_of
from tests.builders import make_policy, make_report
from tests.compiled import patched
from tests.drivers import START_MS, Driver

TOO_MUCH = Undeliverable("a", "big", 2_000, 1_000)


def test_a_queued_run_is_rejected_and_costs_nothing() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "big", "small", body=b"payload")
    effects = driver.step(TOO_MUCH)
    (rejection,) = effects.rejections
    assert (rejection.run_id, rejection.reason, rejection.limit, rejection.value) == ("big", "too_large", 1_000, 2_000)
    assert rejection.detail == "its record takes 2000 bytes, and Kafka takes 1000 at most"
    assert (rejection.retry_after_ms, rejection.body) == (None, b"payload")
    assert effects.counts == {counts.UNDELIVERABLE: 1}
    assert driver.serve_all() == ["blocker", "small"]
    assert driver.flow("a").charged == 100  # the small one
    assert_drained(driver.shard)


def test_it_may_be_sent_again_in_a_smaller_form() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "big")
    driver.step(TOO_MUCH)
    assert not driver.submit("a", "big").rejections


def test_what_the_topic_takes_need_not_be_known() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "big")
    (rejection,) = driver.step(Undeliverable("a", "big", 2_000, None)).rejections
    assert (rejection.limit, rejection.value) == (None, 2_000)
    assert rejection.detail.endswith("Kafka takes less")


@pytest.mark.parametrize("wait", [{"not_before_ms": START_MS + 500}, {"deadline_ms": START_MS + 500}])
def test_one_that_waits_for_its_time_leaves_nothing_behind(wait: dict[str, int]) -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "big", **wait)
    driver.step(TOO_MUCH)
    assert not driver.step(after_ms=1_000).rejections
    assert driver.serve_all() == ["blocker"]
    assert_drained(driver.shard)


def test_one_that_came_back_is_remembered() -> None:
    """Its attempts must not be numbered from 1 again."""
    driver = Driver(make_policy(leases=Leases(backoff_ms=1_000)))
    driver.submit("a", "big")
    driver.step(make_report(driver.dispatches[0], "failed", 30, retryable=True))
    driver.step(TOO_MUCH)
    assert driver.submit("a", "big").rejections[0].reason == reasons.DUPLICATE
    assert driver.flow("a").actual == 30


def test_an_attempt_in_flight_is_revoked_and_pays_what_it_spent() -> None:
    """It was dispatched when the topic took more; its step was given up since it came back and would go out again."""
    driver = Driver(make_policy())
    driver.submit("a", "big")
    effects = driver.step(TOO_MUCH)
    assert [(each.run_id, each.attempt) for each in effects.revokes] == [("big", 1)]
    assert [each.reason for each in effects.rejections] == [reasons.TOO_LARGE]
    driver.step(make_report(driver.dispatches[0], "failed", 30, retryable=True))
    assert driver.flow("a").actual == 30
    assert driver.served() == ["big"]
    assert_drained(driver.shard)


@pytest.mark.parametrize("given", [Undeliverable("nobody", "big", 2, 1), Undeliverable("a", "nothing", 2, 1)])
def test_a_run_that_nobody_knows_is_counted(given: Undeliverable) -> None:
    driver = Driver(make_policy())
    driver.submit("a", "big")
    before = rows_of(driver.shard)
    effects = driver.step(given)
    assert effects.counts == {counts.UNKNOWN: 1}
    assert set(effects.changed) == {("shard",)}
    assert {key: row for key, row in rows_of(driver.shard).items() if key != ("shard",)} == {
        key: row for key, row in before.items() if key != ("shard",)
    }


def test_a_takeover_right_after_it_goes_on_alike() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("b", "blocker")
    driver.submit("a", "big", "small")
    driver.step(TOO_MUCH)
    assert rows_of(Shard.load(0, 1, driver.rows.values())) == driver.rows


def test_reports_that_give_up_too_much_at_once_leave_payloads_out() -> None:
    """2,000 reports may give up 2,000 runs of a megabyte, and no report can wait: their step must fit all the same."""
    driver = Driver(make_policy(runs=None, tokens=10**9, quantum=10**6, leases=Leases(max_attempts=1)))
    driver.submit("a", *[f"r{number}" for number in range(5)], body=bytes(100))
    reports = [make_report(each, "failed", 1, retryable=True) for each in driver.dispatches]
    with patched(state, "MAX_GIVEN_UP_BYTES", 2 * (100 + 10 * NAME_WEIGHT) + 1):
        effects = driver.step(*reports)
    assert [each.reason for each in effects.rejections] == [reasons.DEAD_LETTERED] * 5
    assert [(len(each.body), each.left_out) for each in effects.rejections] == [(100, 0)] * 3 + [(0, 100)] * 2
