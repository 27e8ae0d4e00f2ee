"""Topics on a real Kafka: made once, whoever comes first, and refused when they are not what they should be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient

from streams.admin.kafka import admin_client, create_topic, look, set_topic_configs
from streams.admin.topics import Layout, Plan, apply, describe, ensure, plan, verify, wanted
from streams.clock import wait_until
from streams.errors import ConfigError, Unavailable
from streams.kafka import KafkaSettings
from streams.local import LocalKafka

WAIT_S = 10.0


@pytest.fixture
def admin(kafka: LocalKafka) -> AdminClient:
    return admin_client(KafkaSettings(servers=kafka.bootstrap))


@pytest.fixture
def layout(prefix: str) -> Layout:
    return Layout(shards=3, dispatch_partitions=5, prefix=prefix)


def await_setting(admin: AdminClient, topic: str, name: str, value: str) -> None:
    """A broker tells of a change a moment after it has taken it."""
    wait_until(
        lambda: describe(admin, [topic])[topic].configs[name] == value, WAIT_S, what=f"{name} of {topic} to be {value}"
    )


def test_what_is_made_is_what_was_wanted(admin: AdminClient, layout: Layout) -> None:
    done = ensure(admin, layout)
    topics = wanted(layout, brokers=1)
    assert done == Plan(create=topics)
    existing = describe(admin, [topic.name for topic in topics])
    verify(existing, topics)
    # The broker has taken each setting as it was meant.
    assert plan(existing, topics) == Plan()


def test_making_them_again_does_nothing(admin: AdminClient, layout: Layout) -> None:
    ensure(admin, layout)
    assert ensure(admin, layout) == Plan()


def test_several_processes_may_make_them_at_once(kafka: LocalKafka, layout: Layout) -> None:
    def one_process(_: int) -> None:
        ensure(admin_client(KafkaSettings(servers=kafka.bootstrap)), layout)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one_process, range(4)))
    admin = admin_client(KafkaSettings(servers=kafka.bootstrap))
    topics = wanted(layout, brokers=1)
    verify(describe(admin, [topic.name for topic in topics]), topics)


def test_whoever_is_second_with_another_layout_is_told(admin: AdminClient, layout: Layout) -> None:
    todo = plan({}, wanted(layout, brokers=1))
    create_topic(admin, f"{layout.prefix}state", 2, 1, {})  # another process, after the look and before the deed
    with pytest.raises(ConfigError, match=f"{layout.prefix}state: 2 partitions, 3 wanted"):
        apply(admin, todo)


def test_what_another_process_made_meanwhile_gets_its_settings(admin: AdminClient, layout: Layout) -> None:
    todo = plan({}, wanted(layout, brokers=1))
    name = f"{layout.prefix}state"
    create_topic(admin, name, 3, 1, {})
    apply(admin, todo)
    await_setting(admin, name, "cleanup.policy", "compact")


def test_a_name_that_kafka_does_not_take_is_refused(admin: AdminClient, layout: Layout) -> None:
    with pytest.raises(ConfigError, match="creating the topic"):
        create_topic(admin, "x" * 250, 1, 1, {})
    assert create_topic(admin, f"{layout.prefix}a.b", 1, 1, {})
    with pytest.raises(ConfigError, match="collides"):
        create_topic(admin, f"{layout.prefix}a_b", 1, 1, {})


def test_a_setting_that_was_changed_is_put_right(admin: AdminClient, layout: Layout) -> None:
    ensure(admin, layout)
    name = f"{layout.prefix}state"
    set_topic_configs(admin, name, {"cleanup.policy": "delete", "flush.messages": "7"})
    await_setting(admin, name, "cleanup.policy", "delete")
    assert ensure(admin, layout) == Plan(configure=((name, {"cleanup.policy": "compact"}),))
    await_setting(admin, name, "cleanup.policy", "compact")
    assert describe(admin, [name])[name].configs["flush.messages"] == "7"


def test_a_wrong_count_is_refused_and_nothing_is_changed(admin: AdminClient, layout: Layout) -> None:
    name = f"{layout.prefix}requests"
    assert create_topic(admin, name, 2, 1, {})
    wait_until(lambda: name in look(admin).partitions, WAIT_S, what="the broker to know the topic")
    with pytest.raises(ConfigError, match="2 partitions, 3 wanted"):
        ensure(admin, layout)
    assert [name for name in look(admin).partitions if name.startswith(layout.prefix)] == [name]


def test_a_setting_that_kafka_does_not_know_is_refused(admin: AdminClient, layout: Layout) -> None:
    with pytest.raises(ConfigError, match="creating the topic"):
        create_topic(admin, f"{layout.prefix}odd", 1, 1, {"cleanup.policy": "sometimes"})


def test_a_kafka_that_is_not_there_is_said_so(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.admin.kafka.TIMEOUT_S", 1.0)
    with pytest.raises(Unavailable):
        ensure(admin_client(KafkaSettings(servers="127.0.0.1:1")), layout)
