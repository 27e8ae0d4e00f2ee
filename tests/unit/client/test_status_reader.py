"""The reader of the status topic, where there is nothing to read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.admin import policy
from streams.admin.kafka import admin_client
from streams.audit import kafka_recording
from streams.client import sender, status
from streams.errors import ConfigError, Unavailable
from streams.kafka import KafkaSettings

NOBODY = "127.0.0.1:1"


class EmptyKafka:
    """A consumer of a Kafka that has no topics."""

    def __init__(self, _settings: dict[str, Any]) -> None: ...

    def assign(self, _partitions: list[Any]) -> None: ...

    def list_topics(self, _topic: str | None, _timeout: float) -> SimpleNamespace:
        return SimpleNamespace(topics={})

    def poll(self, _timeout: float) -> None:
        raise AssertionError("waits for a topic that there is not")

    def close(self) -> None: ...


def test_a_deployment_that_there_is_not_is_no_silent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "Consumer", EmptyKafka)
    with (
        status.StatusReader(KafkaSettings(servers="a:1", prefix="nix.")) as reader,
        pytest.raises(ConfigError, match=r"nix\.status: no such topic.*create the topics with `fairstream topics`"),
    ):
        reader.catch_up()


def test_who_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_recording, "_ASK_S", 0.1)
    nobody = KafkaSettings(servers=NOBODY)
    said = f"asking {NOBODY} for its topics: .*is Kafka running there"
    with pytest.raises(Unavailable, match=said):
        kafka_recording.KafkaRecording(nobody)
    with status.StatusReader(nobody) as reader, pytest.raises(Unavailable, match=said):
        reader.catch_up(0.1)
    with pytest.raises(Unavailable, match=said):
        sender.check_topic(nobody, sender.make_producer(nobody, report_success=False), "runs.requests", 0.1)
    with pytest.raises(Unavailable, match=said):
        admin_client(nobody).list_topics(timeout=0.1)
    monkeypatch.setattr(policy, "TIMEOUT_S", 0.1)
    with pytest.raises(Unavailable, match=f"reading the policy from {NOBODY}: "):
        policy.read_policy(nobody)
