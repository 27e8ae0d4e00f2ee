from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.app import status
from streams.app.status import StatusPublisher
from streams.core.snapshot import ShardSnapshot
from streams.kafka import KafkaSettings
from tests.unit.app.fakes import FakeWriter, completion, completions, load_from, request, requests


class FakeProducer:
    def __init__(self, conf: dict[str, Any]) -> None:
        self.conf = conf
        self.sent: list[tuple[Any, bytes | None]] = []
        self.full = False
        self.gone = False

    def produce(self, topic: str, value: bytes | None, key: bytes) -> None:
        assert topic == "runs.status"
        if self.full:
            raise BufferError
        if self.gone:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC))
        self.sent.append((orjson.loads(key), value))

    def poll(self, _timeout: float) -> None:
        pass

    def flush(self, _timeout: float) -> None:
        pass

    def keys(self) -> list[Any]:
        keys, self.sent = [key for key, _ in self.sent], []
        return keys


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    made = FakeProducer({})

    def make(conf: dict[str, Any]) -> FakeProducer:
        made.conf = conf
        return made

    monkeypatch.setattr(status, "Producer", make)
    return made


def snapshots() -> list[ShardSnapshot]:
    """A shard before and after a second tenant came, and after it was served."""
    stepper = load_from(FakeWriter())()
    views = []
    for batch in (requests(request(0, "a")), requests(request(1, "b")), completions(completion(0, "run-1", "b"))):
        stepper.step([batch], (), 1_000)
        views.append(stepper.core.snapshot())
    return views


def publish(publisher: StatusPublisher, *views: ShardSnapshot) -> None:
    for view in views:
        publisher._publish(view)


@pytest.mark.parametrize("trouble", ["full", "gone", "lost"])
def test_what_was_dropped_is_shown_again_though_it_does_not_change(producer: FakeProducer, trouble: str) -> None:
    """And a topic that is gone ended the publisher, for good."""
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, *_ = snapshots()
    if trouble == "lost":
        publish(publisher, one)
        producer.conf["on_delivery"](KafkaError(KafkaError._MSG_TIMED_OUT), None)
    else:
        setattr(producer, trouble, True)
        publish(publisher, one)
        setattr(producer, trouble, False)
    producer.keys()
    publish(publisher, one)
    assert producer.keys() == [[0], [0, "default"], [0, "default", "a"]]
    publish(publisher, one)
    assert producer.keys() == [[0]]


def test_a_flow_is_shown_when_it_changes_and_the_shard_always(producer: FakeProducer) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, two, three = snapshots()
    publish(publisher, one)
    assert producer.keys() == [[0], [0, "default"], [0, "default", "a"]]
    publish(publisher, one)
    assert producer.keys() == [[0]]
    publish(publisher, two)
    assert producer.keys() == [[0], [0, "default"], [0, "default", "b"]]
    publish(publisher, replace(two, shard=replace(two.shard, step=99)))
    assert producer.keys() == [[0]]
    publish(publisher, replace(three, classes=two.classes))
    assert producer.keys() == [[0], [0, "default", "b"]]


def test_a_class_that_is_gone_is_taken_out_of_the_topic(producer: FakeProducer) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, *_ = snapshots()
    publish(publisher, one, replace(one, classes=()))
    assert producer.sent[-1] == ([0, "default"], None)


def test_a_flow_that_is_gone_is_taken_out_of_the_topic(producer: FakeProducer) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, two, _ = snapshots()
    publish(publisher, two, one)
    assert producer.sent[-1] == ([0, "default", "b"], None)


def test_a_shard_that_comes_back_is_shown_in_full(producer: FakeProducer) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, *_ = snapshots()
    publish(publisher, one)
    publisher.forget(0)
    producer.keys()
    publish(publisher, one)
    assert producer.keys() == [[0], [0, "default"], [0, "default", "a"]]


def test_a_slow_kafka_costs_views_and_one_line(producer: FakeProducer, caplog: pytest.LogCaptureFixture) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    producer.full = True
    publish(publisher, *snapshots())
    producer.conf["on_delivery"](KafkaError(KafkaError._MSG_TIMED_OUT, "late"), None)
    producer.conf["on_delivery"](None, None)
    assert caplog.text.count("streams.app.status_dropped") == 1


def test_the_newest_view_replaces_one_that_was_not_shown_yet(producer: FakeProducer) -> None:
    publisher = StatusPublisher(KafkaSettings(servers="nowhere:9092"), "runs.status")
    one, two, three = snapshots()
    for view in (one, two, three):
        publisher.offer(view)
    publisher.close()
    publisher.start()
    publisher.join(5)
    assert not publisher.is_alive()
    assert producer.keys() == [[0], [0, "default"], [0, "default", "a"], [0, "default", "b"]]
