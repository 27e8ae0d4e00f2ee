"""What a migration refuses before it touches anything."""

from __future__ import annotations

from typing import Any

import pytest

from streams.admin.kafka import Cluster
from streams.admin.migration import migrate
from streams.admin.migration.migrate import Migration
from streams.admin.migration.sides import ShardRows
from streams.errors import ConfigError, StateUnreadable
from streams.kafka import KafkaSettings
from streams.rows import FillingRecord, MovedRecord
from streams.wire import topic_names

NAMES = topic_names("runs.")


@pytest.fixture(autouse=True)
def _kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with a deployment of two shards, and nobody to ask."""
    partitions = dict.fromkeys(NAMES, 2) | dict.fromkeys(topic_names("runs-c."), 1)
    monkeypatch.setattr(migrate, "admin_client", lambda _settings: None)
    monkeypatch.setattr(migrate, "look", lambda _admin: Cluster(1, partitions))


class FakeWriter:
    def fence(self) -> None: ...


def make(
    monkeypatch: pytest.MonkeyPatch, to: str, *, old: list[ShardRows], new: list[ShardRows], **more: Any
) -> Migration:
    monkeypatch.setattr(migrate, "Writer", lambda _kafka, _id: FakeWriter())
    monkeypatch.setattr(migrate, "read_side", lambda side: old if side.kafka.prefix == "runs." else new)
    before, after = (KafkaSettings(servers="nowhere:1", prefix=prefix) for prefix in ("runs.", to))
    return Migration(before, after, 3, **more)


def rows(**said: Any) -> list[ShardRows]:
    return [ShardRows(raw={b"k": b"v"}, **said) for _ in range(2)]


def test_the_same_prefix_and_one_that_would_be_the_same_group(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="another prefix than the present one"):
        make(monkeypatch, "runs.", old=[], new=[])
    with pytest.raises(ConfigError, match="of the same group as the present ones, 'fairstream'"):
        make(monkeypatch, "x.", old=[], new=[], new_group="fairstream")


def test_a_deployment_that_has_gone_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = make(monkeypatch, "runs-b.", old=rows(moved=MovedRecord("runs-z.", 3)), new=[])
    with pytest.raises(ConfigError, match="has moved, or begun to, to 3 shard"):
        gone.run()


def test_a_deployment_that_is_not_all_there_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished = make(monkeypatch, "runs-b.", old=rows(filling=FillingRecord("runs-a.", 3)), new=[])
    with pytest.raises(ConfigError, match=r"being made from the deployment under the prefix 'runs-a\.'"):
        unfinished.look()


@pytest.mark.parametrize("to", ["runs-b.", "runs-c."])
def test_what_it_took_along_is_gone(monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    """The new topics were deleted, or made anew: to sweep into those would look as if all was well."""
    lost = make(monkeypatch, to, old=rows(moved=MovedRecord(to, 3)), new=[ShardRows()])
    with pytest.raises(ConfigError, match="what it took along is gone"):
        lost.run()


def test_rows_that_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "read_policy", lambda _kafka: None)
    monkeypatch.setattr(migrate, "reshard", _refuse)
    with pytest.raises(StateUnreadable, match=r"the rows of runs\.state contradict each other: no"):
        make(monkeypatch, "runs-b.", old=rows(), new=[]).look()


def _refuse(*_: object) -> None:
    raise ValueError("no")
