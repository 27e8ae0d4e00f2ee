"""Each record names its row."""

from __future__ import annotations

from streams.core.policy import Policy
from streams.core.records import (
    EndedRecord,
    HistoryRecord,
    PolicyRecord,
    RingRecord,
    ShardRecord,
    key_of,
)
from tests.assertions import KINDS, rows_of
from tests.builders import make_policy, make_report
from tests.drivers import Driver


def test_keys_begin_with_the_kind() -> None:
    assert key_of(ShardRecord(shard=1, shards=2)) == ("shard",)
    assert key_of(PolicyRecord(version=3, policy=Policy())) == ("policy",)
    assert key_of(RingRecord(class_="high")) == ("ring", "high")
    assert key_of(HistoryRecord(tenant="a", workflow="w")) == ("history", "a", "w")
    assert key_of(EndedRecord(step=12, at_ms=0, runs=[])) == ("ended", "12")


def test_every_kind_of_row_is_dumped_under_its_key() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "done", "again", "waits")
    driver.succeed(driver.dispatches[0])
    driver.step(make_report(driver.dispatches[1], "failed", retryable=True))
    rows = rows_of(driver.shard)
    assert {type(row) for row in rows.values()} == set(KINDS)
    assert {key for key in rows if key[0] in {"run", "retry", "flight", "flow"}} == {
        ("flow", "default", "a"),
        ("run", "a", "again"),
        ("run", "a", "waits"),
        ("retry", "a", "again"),
        ("flight", "a", "again", "2"),
    }
