from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError

from streams import clock
from streams.app import policy_reader
from streams.app.policy_reader import PolicyFeed, PolicyReader
from streams.core.policy import Policy, TenantRules
from streams.errors import FairstreamError, NotAuthorized, OwnershipLost, Unavailable
from streams.kafka import KafkaSettings
from streams.wire import MAX_POLICY_BYTES, AppliedPolicy, PolicyChange, encode_policy, policy_bytes


def change(position: int) -> AppliedPolicy:
    return AppliedPolicy(position, "ann", 1_000, Policy(name=f"policy-{position}"))


def test_a_feed_gives_what_came_after_a_version_in_order() -> None:
    feed = PolicyFeed()
    assert feed.after(-1) == ()
    for position in (0, 3, 4):
        feed.add(change(position))
    assert [each.offset for each in feed.after(-1)] == [0, 3, 4]
    assert [each.offset for each in feed.after(3)] == [4]
    assert feed.after(4) == ()
    assert feed.after(99) == ()


def test_a_feed_keeps_the_newest_changes_only() -> None:
    feed = PolicyFeed()
    for position in range(1_000):
        feed.add(change(position))
    kept = [each.offset for each in feed.after(-1)]
    assert kept == list(range(1_000 - len(kept), 1_000))
    assert len(kept) < 100


def test_a_feed_keeps_no_more_than_has_room_in_a_journal_record() -> None:
    feed = PolicyFeed()
    for position in range(5):
        tenants = {f"{'x' * 200}{number:05}": TenantRules(weight=2) for number in range(5_000)}
        feed.add(AppliedPolicy(position, "ann", 1_000, Policy(tenants=tenants)))
        kept = feed.after(-1)
        assert kept[-1].offset == position
        assert sum(policy_bytes(each.policy) for each in kept) <= MAX_POLICY_BYTES
    assert [each.offset for each in kept] == [3, 4]


class Message:
    def __init__(self, offset: int, value: bytes | None = None, error: KafkaError | None = None) -> None:
        self._offset, self._value, self._error = offset, value, error

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error


class Topic:
    """A consumer of the policy topic, with the test at its other end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *messages: Message) -> None:
        self._messages = list(messages)
        self.closed = threading.Event()
        monkeypatch.setattr(policy_reader, "Consumer", lambda _conf: self)
        monkeypatch.setattr(policy_reader, "_READ_S", 5.0)
        self.changes = 0
        self.failures: list[BaseException] = []
        settings = KafkaSettings(servers="nowhere:9092")
        self.reader = PolicyReader(settings, "runs.policy", on_change=self._count, on_failure=self.failures.append)

    def _count(self) -> None:
        self.changes += 1

    def assign(self, partitions: list[Any]) -> None:
        assert [(each.topic, each.partition) for each in partitions] == [("runs.policy", 0)]

    def poll(self, _timeout: float) -> Message | None:
        return self._messages.pop(0) if self._messages else None

    def close(self) -> None:
        self.closed.set()


def state(offset: int, name: str) -> Message:
    return Message(offset, encode_policy(PolicyChange(Policy(name=name), "me", 1)))


END = Message(0, error=KafkaError(KafkaError._PARTITION_EOF, "end"))


def test_it_reads_to_the_end_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, state(0, "first"), Message(1), state(2, "second"), END)
    topic.reader.start()
    topic.reader.wait_until_read()
    assert [(each.offset, each.policy.name) for each in topic.reader.feed.after(-1)] == [(0, "first"), (2, "second")]
    assert topic.changes == 2
    topic.reader.close()
    assert topic.closed.wait(5)
    assert topic.failures == []


def test_rules_that_cannot_be_read_leave_the_last_good_ones_in_force(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(monkeypatch, state(0, "good"), Message(1, b'{"policy": {"quantum": 0}}'), END)
    topic.reader.start()
    topic.reader.wait_until_read()
    assert [each.policy.name for each in topic.reader.feed.after(-1)] == ["good"]
    assert "streams.app.policy_refused topic=runs.policy offset=1" in caplog.text
    topic.reader.close()


def test_a_topic_that_cannot_be_read_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch)
    monkeypatch.setattr(policy_reader, "_READ_S", 0.01)
    with pytest.raises(Unavailable, match=r"runs\.policy could not be read"):
        topic.reader.wait_until_read()


def test_what_kafka_said_while_nothing_could_be_read_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, Message(0, error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "never heard of it")))
    topic.reader.start()
    monkeypatch.setattr(policy_reader, "_READ_S", 0.5)
    with pytest.raises(Unavailable, match="never heard of it"):
        topic.reader.wait_until_read()
    topic.reader.close()
    assert topic.failures == []


def test_who_is_told_to_stop_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch)
    monkeypatch.setattr(policy_reader, "_READ_S", 60.0)
    with pytest.raises(OwnershipLost):
        topic.reader.wait_until_read(lambda: True)


def test_a_right_that_is_missing_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked like a Kafka that does not answer, and was waited for without end."""
    topic = Topic(monkeypatch, Message(0, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    topic.reader.start()
    clock.wait_until(lambda: topic.failures, 5, 0.01, what="the failure")
    assert isinstance(topic.failures[0], NotAuthorized)


def test_its_failure_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, Message(0, error=KafkaError(KafkaError._FATAL, "broken", fatal=True)))
    topic.reader.start()
    clock.wait_until(lambda: topic.failures, 5, 0.01, what="the failure")
    assert isinstance(topic.failures[0], FairstreamError)
