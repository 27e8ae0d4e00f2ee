"""Policies on a real Kafka: what was published is what is in force."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy, read_policy
from streams.admin.topics import Layout, ensure
from streams.core.policy import Policy, TenantRules
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import PolicyChange


@pytest.fixture
def settings(kafka: LocalKafka, prefix: str) -> KafkaSettings:
    settings = KafkaSettings(servers=kafka.bootstrap, prefix=prefix)
    ensure(admin_client(settings), Layout(prefix=prefix))
    return settings


def change(quantum: int) -> PolicyChange:
    policy = Policy(name="live", quantum=quantum, tenants={"acme.com": TenantRules(plan="pro", weight=4)})
    return PolicyChange(policy, author="ann", applied_ms=1_764_000_000_000 + quantum)


def test_without_a_policy_there_is_none(settings: KafkaSettings) -> None:
    assert read_policy(settings) is None


def test_the_last_policy_is_in_force(settings: KafkaSettings) -> None:
    versions = [publish_policy(settings, change(quantum)) for quantum in (100, 200, 300)]
    assert versions == sorted(set(versions))
    in_force = read_policy(settings)
    assert in_force is not None
    assert in_force == (versions[-1], change(300))


def test_a_record_that_is_no_policy_changes_nothing(settings: KafkaSettings) -> None:
    version = publish_policy(settings, change(100))
    producer = Producer(settings.client())
    for value in (b"\x00\x01", b'{"author":"eve","applied_ms":1,"policy":{"quantum":0}}', None):
        producer.produce(settings.topics.policy, value, b"live")
    assert producer.flush(30) == 0
    assert read_policy(settings) == (version, change(100))


def test_a_policy_of_many_tenants_travels_whole(settings: KafkaSettings) -> None:
    rules = {f"tenant-{number:05}": TenantRules(plan="pro", weight=1 + number % 9) for number in range(20_000)}
    large = PolicyChange(Policy(tenants=rules), "ann", 1)
    version = publish_policy(settings, large)
    assert read_policy(settings) == (version, large)


def test_without_the_topic_the_way_out_is_told(kafka: LocalKafka, prefix: str) -> None:
    settings = KafkaSettings(servers=kafka.bootstrap, prefix=f"{prefix}missing.")
    with pytest.raises(ConfigError, match="fairstream topics"):
        publish_policy(settings, change(100))
    with pytest.raises(ConfigError, match="fairstream topics"):
        read_policy(settings)
