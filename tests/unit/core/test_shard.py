"""The door: steps, time, and the order of what happens in one."""

from __future__ import annotations

import pytest

from streams.core.inputs import SetPolicy, Takeover
from streams.core.policy import Policy
from streams.core.shard import Shard
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.drivers import START_MS, Driver


def test_a_fresh_shard_has_no_rows_and_the_built_in_policy() -> None:
    shard = Shard(0, 1)
    assert list(shard.dump()) == []
    assert (shard.epoch, shard.now_ms, shard.policy_version) == (0, 0, -1)
    assert shard.snapshot().shard.policy_name == Policy().name


def test_steps_are_numbered_and_write_the_shards_own_row() -> None:
    shard = Shard(0, 1)
    for step in (1, 2):
        effects = shard.step([], START_MS)
        assert (effects.step, effects.now_ms, list(effects.changed)) == (step, START_MS, [("shard",)])


def test_time_never_goes_back() -> None:
    shard = Shard(0, 1)
    shard.step([], START_MS)
    assert shard.step([], START_MS - 5_000).now_ms == START_MS
    assert shard.now_ms == START_MS


def test_inputs_are_taken_in_the_order_given_and_dispatching_comes_last() -> None:
    driver = Driver(make_policy(runs=1))
    submit = driver.requests("a", ["r1"])
    effects = driver.step(make_cancel("a", "r1"), *submit, *driver.requests("b", ["r2"]), make_cancel("a", "r1"))
    assert effects.counts == {"unknown": 1, "accepted": 2, "cancelled": 1, "dispatched": 1}
    assert driver.served() == ["r2"]


def test_a_policy_binds_on_the_inputs_behind_it() -> None:
    driver = Driver()
    effects = driver.step(
        make_submit("a", "r1", position=1, class_="high"),
        SetPolicy(2, make_policy(classes=("high",))),
        make_submit("a", "r2", position=3, class_="high"),
    )
    assert [rejection.run_id for rejection in effects.rejections] == ["r1"]
    assert driver.served() == ["r2"]


def test_a_report_makes_room_in_its_own_step() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "r1", "r2")
    effects = driver.step(make_report(driver.dispatches[0], "succeeded", 5))
    assert [dispatch.run_id for dispatch in effects.dispatches] == ["r2"]


def test_a_new_owner_names_its_epoch() -> None:
    driver = Driver(make_policy())
    driver.step(Takeover(4))
    assert driver.shard.epoch == 4
    driver.take_over()
    assert driver.shard.epoch == 5


@pytest.mark.parametrize("quiet", [0, 7_000])
def test_outages_add_up_and_the_time_between_steps_is_not_one(quiet: int) -> None:
    driver = Driver(make_policy())
    driver.step(after_ms=quiet)
    driver.take_over(after_ms=300)
    driver.step(after_ms=quiet)
    driver.take_over(after_ms=200)
    record = driver.shard._state.record
    assert record.outage_ms == 500


def test_the_first_step_of_all_is_no_outage() -> None:
    shard = Shard(0, 1)
    shard.step([Takeover(1)], START_MS)
    assert shard._state.record.outage_ms == 0
