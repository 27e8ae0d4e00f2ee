"""The state topic is compacted while a shard lives on it, and what was deleted stays deleted in the next owner.

A deployment's is compacted within minutes. Here the broker looks every 0.1 s, and from the moment when everything has
been written it rolls, cleans and forgets at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from streams import clock
from streams.admin.kafka import admin_client, set_topic_configs
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from tests.integration.arithmetic import gather_when_drained
from tests.integration.deployment import deploy
from tests.integration.topics import Seen, read_topic
from tests.integration.traffic import Feeder, traffic

RUNS = 2_000
NEW = 10
EAGER: Final = {
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "200",
}


@pytest.fixture(scope="module")
def eager_kafka() -> Iterator[LocalKafka]:
    with LocalKafka(settings={"log.cleaner.backoff.ms": "100"}) as cluster:
        yield cluster


@pytest.mark.slow
def test_what_is_deleted_stays_gone_after_compaction(eager_kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    servers = eager_kafka.bootstrap
    here = deploy(servers, prefix, tmp_path, shards=1, window=200)
    state = here.names.state
    with traffic(servers, prefix, per_s=0) as (feeder, _):
        with here.scheduler("before") as before:
            before.wait_until_ready({0})
            file(feeder, RUNS)
            gather_when_drained(servers, prefix, 1)
            whole = read_topic(servers, state)
            deleted = {each.key for each in whole} - rows_of(whole).keys()
            assert len(deleted) > 2 * RUNS, "each run has had a row, and each of its attempts"

            set_topic_configs(admin_client(KafkaSettings(servers=servers)), state, EAGER)

            def compacted() -> list[Seen] | None:
                file(feeder, 1)  # the segment that is written to is never cleaned, and only a record makes a new one
                seen = read_topic(servers, state)
                return seen if deleted.isdisjoint(each.key for each in seen) else None

            left = clock.wait_until(compacted, 60, 0.2, what="the compaction of the state topic")
            assert left is not None
            assert_same_rows(whole, left)
            gather_when_drained(servers, prefix, 1)
            assert before.stop() == 0

        again = Feeder(servers, prefix, per_s=0)  # with the same seed: the same runs
        with here.scheduler("after") as after:
            after.wait_until_ready({0})
            file(again, feeder.filed)
            file(again, NEW)
            evidence = here.prove()
    late = {each.run_id for each in evidence.dispatches if each.epoch > 1}
    assert late == {f"run-{feeder.filed + number}" for number in range(NEW)}, "all others are known to have ended"


def file(feeder: Feeder, number: int) -> None:
    for _ in range(number):
        feeder.file()
    feeder.finish()


def assert_same_rows(whole: list[Seen], left: list[Seen]) -> None:
    """Each row is there, and what it was or newer."""
    rows = rows_of(whole)
    assert rows.keys() <= rows_of(left).keys()
    newer = {each.key for each in left if each.offset > whole[-1].offset}
    for key, value in rows_of(left).items():
        assert key in newer or rows[key] == value, f"{key!r} has a value that was replaced"


def rows_of(seen: list[Seen]) -> dict[bytes | None, bytes]:
    rows: dict[bytes | None, bytes] = {}
    for each in seen:
        if each.value is None:
            rows.pop(each.key, None)
        else:
            rows[each.key] = each.value
    return rows
