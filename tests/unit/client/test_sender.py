from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from streams.client.sender import Sender
from streams.errors import BadRecord, Unavailable
from tests.unit.client.fakes import FakeProducer


def test_a_record_is_queued_with_its_key() -> None:
    producer = FakeProducer()
    Sender(producer).send("t", "küche", b"v")
    assert producer.sent == [("t", "küche".encode(), b"v")]


def test_a_full_queue_is_waited_for() -> None:
    producer = FakeProducer(room=1)
    sender = Sender(producer)
    producer.stuck = True
    sender.send("t", "a", b"1")
    producer.stuck = False
    sender.send("t", "a", b"2")
    assert [value for _, _, value in producer.sent] == [b"1", b"2"]
    assert producer.polls > 1


def test_a_queue_that_stays_full_is_unavailable_and_the_record_not_queued() -> None:
    producer = FakeProducer(room=1)
    sender = Sender(producer, queue_wait_s=0.01)
    producer.stuck = True
    sender.send("t", "a", b"1")
    with pytest.raises(Unavailable, match="queue of 1 records"):
        sender.send("t", "a", b"2")
    assert len(producer.sent) == 1


def test_what_the_client_refuses_is_told_in_our_words() -> None:
    producer = FakeProducer()
    producer.refuse_with = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    with pytest.raises(BadRecord, match="sending to t"):
        Sender(producer).send("t", "a", b"1")
