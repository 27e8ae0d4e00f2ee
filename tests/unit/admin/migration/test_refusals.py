"""What a migration refuses before it touches anything."""

from __future__ import annotations

from typing import Any

import pytest

from streams.admin.kafka import Cluster
from streams.admin.migration import migrate
from streams.admin.migration.migrate import Migration
from streams.admin.migration.sides import pair
from streams.core.records import HistoryRecord
from streams.errors import ConfigError, StateUnreadable
from streams.kafka import KafkaSettings
from streams.rows import FillingRecord, MovedRecord, Row
from streams.transactions import Out
from streams.wire import topic_names
from tests.unit.admin.migration.fakes import FakeKafka

NAMES = topic_names("runs.")


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> FakeKafka:
    """A cluster with a deployment of two shards."""
    partitions = dict.fromkeys(NAMES, 2) | dict.fromkeys(topic_names("runs-c."), 1)
    monkeypatch.setattr(migrate, "admin_client", lambda _settings: None)
    monkeypatch.setattr(migrate, "look", lambda _admin: Cluster(1, partitions))
    return FakeKafka(monkeypatch)


def migration(to: str, **more: Any) -> Migration:
    before, after = (KafkaSettings(servers="nowhere:1", prefix=prefix) for prefix in ("runs.", to))
    return Migration(before, after, 3, **more)


def say(kafka: FakeKafka, row: Row) -> None:
    """Let every old state partition say this."""
    kafka.write([Out(NAMES.state, shard, *pair(shard, row)) for shard in range(2)])


def test_the_same_prefix_and_one_that_would_be_the_same_group() -> None:
    with pytest.raises(ConfigError, match="another prefix than the present one"):
        migration("runs.")
    with pytest.raises(ConfigError, match="of the same group as the present ones, 'fairstream'"):
        migration("x.", new_group="fairstream")


def test_a_deployment_that_has_gone_elsewhere(kafka: FakeKafka) -> None:
    say(kafka, MovedRecord("runs-z.", 3))
    with pytest.raises(ConfigError, match="has moved, or begun to, to 3 shard"):
        migration("runs-b.").run()


def test_a_deployment_that_is_not_all_there_itself(kafka: FakeKafka) -> None:
    say(kafka, FillingRecord("runs-a.", 3))
    with pytest.raises(ConfigError, match=r"being made from the deployment under the prefix 'runs-a\.'"):
        migration("runs-b.").look()


@pytest.mark.parametrize("to", ["runs-b.", "runs-c."])
def test_what_it_took_along_is_gone(kafka: FakeKafka, to: str) -> None:
    """The new topics were deleted, or made anew: to sweep into those would look as if all was well."""
    say(kafka, MovedRecord(to, 3))
    with pytest.raises(ConfigError, match="what it took along is gone"):
        migration(to).run()


def test_rows_that_contradict_each_other(kafka: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant in two shards."""
    say(kafka, HistoryRecord("t", "w", 1))
    monkeypatch.setattr(migrate, "read_policy", lambda _kafka: None)
    with pytest.raises(StateUnreadable, match=r"the rows of runs\.state contradict each other: .* tenant 't'"):
        migration("runs-b.").look()
