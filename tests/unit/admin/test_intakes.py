"""Intake topics as they should be."""

from __future__ import annotations

import pytest

from streams.admin.intakes import wanted_intakes
from streams.errors import BadRecord, ConfigError


def test_each_tenant_gets_one_topic_of_one_partition() -> None:
    topics = wanted_intakes("eu.", ["acme", "a/b", "acme"], brokers=3)
    assert [(topic.name, topic.partitions, topic.replication) for topic in topics] == [
        ("eu.requests.of.acme", 1, 3),
        ("eu.requests.of.a_2fb", 1, 3),
    ]
    assert topics[0].configs["min.insync.replicas"] == "2"


def test_what_holds_a_malicious_writer_is_a_setting_of_the_topic() -> None:
    [topic] = wanted_intakes("eu.", ["acme"], brokers=1)
    assert topic.configs["message.timestamp.type"] == "LogAppendTime"
    assert topic.configs["compression.type"] == "uncompressed"
    # Read again after the group's offsets have expired, a record would be done twice: it must be gone by then.
    offsets_retention_ms = 7 * 86_400_000
    assert int(topic.configs["retention.ms"]) + int(topic.configs["segment.ms"]) < offsets_retention_ms
    assert "min.insync.replicas" not in topic.configs


def test_who_cannot_have_one_is_named() -> None:
    with pytest.raises(BadRecord, match="too long"):
        wanted_intakes("eu.", ["acme", "x" * 255], brokers=1)
    with pytest.raises(ConfigError, match="replication"):
        wanted_intakes("eu.", ["acme"], brokers=1, replication=3)
