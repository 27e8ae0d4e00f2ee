"""A broker that takes the group's settings, and when it acts on them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka.admin import ConfigEntry, ConfigResource  # type: ignore[attr-defined] # exported nowhere by name

from streams.client import share_group
from streams.client.share_group import WANTED, prepare
from streams.errors import Unavailable
from streams.kafka import KafkaSettings

KAFKA = KafkaSettings(servers="127.0.0.1:1")


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


class FakeAdmin:
    """Takes settings, and has them in force after so many more looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.altered: dict[str, str] = {}

    def describe_configs(self, resources: list[ConfigResource], **_: object) -> dict[ConfigResource, Future[Any]]:
        if self.altered:
            self.looks -= 1
        values = self.altered if self.altered and self.looks < 0 else dict.fromkeys(WANTED, "the default")
        return {resources[0]: done({name: ConfigEntry(name, value) for name, value in values.items()})}

    def incremental_alter_configs(
        self, resources: list[ConfigResource], **_: object
    ) -> dict[ConfigResource, Future[Any]]:
        self.altered = {entry.name: str(entry.value) for entry in resources[0].incremental_configs}
        return {resources[0]: done(None)}


def prepared(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> FakeAdmin:
    monkeypatch.setattr(share_group, "AdminClient", lambda _: admin)
    assert prepare(KAFKA, "workers")
    assert not prepare(KAFKA, "workers"), "they are in force now"
    return admin


def test_settings_are_made_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = prepared(monkeypatch, FakeAdmin(looks=2))
    assert admin.altered == WANTED
    assert admin.looks < 0


def test_settings_that_are_never_in_force_make_the_group_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_group, "_SEEN_S", 0.0)
    with pytest.raises(Unavailable, match="share group workers: not within 0 s: Kafka took them"):
        prepared(monkeypatch, FakeAdmin(looks=1_000))
