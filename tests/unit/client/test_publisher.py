from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaError

from streams import client
from streams.client.publisher import Publisher
from streams.core.inputs import Cancel, Submit
from streams.errors import BadRecord, ConfigError, NotDelivered, Unavailable
from streams.kafka import KafkaSettings
from streams.wire import Position, decode_request
from tests.unit.client.fakes import FakeProducer

KAFKA = KafkaSettings(servers="127.0.0.1:1", prefix="p.")
MOMENT = datetime(2026, 7, 1, 12, 0, 0, 250_000, tzinfo=UTC)
MOMENT_MS = 1_782_907_200_250


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def publisher(producer: FakeProducer) -> Publisher:
    return Publisher(KAFKA, producer=producer)


def read_back(producer: FakeProducer) -> Submit | Cancel:
    """The only record sent, as the scheduler reads it."""
    [(topic, key, value)] = producer.sent
    assert topic == "p.requests"
    request = decode_request(key, value, 0, 1)
    assert key.decode() == request.tenant
    return request


def test_the_scheduler_reads_what_was_said(publisher: Publisher, producer: FakeProducer) -> None:
    publisher.submit(
        "acme",
        "r1",
        "summarise",
        {"a": [1]},
        class_="batch",
        estimate=10,
        max_tokens=20,
        not_before=MOMENT,
        deadline=MOMENT + timedelta(seconds=1),
        max_attempts=2,
        lease=timedelta(minutes=5),
        headers={"trace": "x"},
    )
    assert read_back(producer) == Submit(
        position=0,
        tenant="acme",
        run_id="r1",
        workflow="summarise",
        class_="batch",
        estimate=10,
        max_tokens=20,
        not_before_ms=MOMENT_MS,
        deadline_ms=MOMENT_MS + 1_000,
        max_attempts=2,
        lease_ms=300_000,
        submitted_ms=1,
        body=b'{"max_tokens":20,"payload":{"a":[1]},"headers":{"trace":"x"}}',
    )


def test_a_cancel_names_the_run(publisher: Publisher, producer: FakeProducer) -> None:
    publisher.cancel("acme", "r1")
    assert read_back(producer) == Cancel(0, "acme", "r1")


def test_a_message_in_the_schemas_names_is_the_same_run(publisher: Publisher, producer: FakeProducer) -> None:
    publisher.submit("acme", "r1", "w", class_="batch", deadline=MOMENT, lease=timedelta(seconds=1))
    publisher.submit_message(
        {
            "tenant": "acme",
            "run_id": "r1",
            "workflow": "w",
            "class": "batch",
            "deadline_ms": MOMENT_MS,
            "lease_ms": 1_000,
        }
    )
    assert producer.sent[0] == producer.sent[1]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tenant": ""}, "tenant"),
        ({"run_id": "x" * 256}, "run_id"),
        ({"workflow": None}, "workflow"),
        ({"estimate": -1}, "estimate"),
        ({"estimate": 1.5}, "estimate"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"payload": object()}, "payload"),
        ({"payload": "x" * 1_100_000}, "value"),
        ({"deadline": datetime(2026, 7, 1)}, "deadline"),  # noqa: DTZ001 - that is the point
        ({"lease": timedelta(0)}, "lease_ms"),
        ({"headers": {"a": 1}}, "headers"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_sent(
    publisher: Publisher, producer: FakeProducer, fields: dict[str, object], named: str
) -> None:
    request: dict[str, object] = {"tenant": "acme", "run_id": "r1", "workflow": "w", **fields}
    with pytest.raises(BadRecord) as caught:
        publisher.submit(**request)  # type: ignore[arg-type] # wrong on purpose
    assert (caught.value.field or "").startswith(named)
    assert producer.sent == []


@pytest.mark.parametrize("name", ["tenant", "run_id", "workflow"])
def test_a_message_without_a_needed_field_is_refused(publisher: Publisher, producer: FakeProducer, name: str) -> None:
    message = {"tenant": "acme", "run_id": "r1", "workflow": "w"}
    del message[name]
    with pytest.raises(BadRecord) as caught:
        publisher.submit_message(message)
    assert caught.value.field == name
    assert producer.sent == []


def test_a_delivery_ends_as_a_place(publisher: Publisher, producer: FakeProducer) -> None:
    producer.stuck = True
    delivery = publisher.submit("acme", "r1", "w")
    assert not delivery.done()
    producer.stuck = False
    assert delivery.result() == Position("p.requests", 0, 0)
    assert delivery.done()
    assert delivery.error is None


def test_a_delivery_that_does_not_come_is_no_answer_yet(publisher: Publisher, producer: FakeProducer) -> None:
    producer.stuck = True
    delivery = publisher.submit("acme", "r1", "w")
    with pytest.raises(Unavailable, match="may still be"):
        delivery.result(0.01)
    assert not delivery.done()


def test_a_failed_delivery_raises_where_it_is_asked_for(publisher: Publisher, producer: FakeProducer) -> None:
    producer.fail_with = KafkaError(KafkaError._MSG_TIMED_OUT)
    delivery = publisher.submit("acme", "r1", "w")
    with pytest.raises(Unavailable, match=r"p\.requests"):
        delivery.result()
    assert isinstance(delivery.error, Unavailable)


def test_flush_raises_for_failures_once(publisher: Publisher, producer: FakeProducer) -> None:
    producer.fail_with = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    for number in range(3):
        publisher.submit("acme", f"r{number}", "w")
    with pytest.raises(NotDelivered, match=r"3 records.*fairstream topics") as caught:
        publisher.flush()
    assert caught.value.failed == 3
    assert isinstance(caught.value.first, ConfigError)
    producer.fail_with = None
    publisher.submit("acme", "r4", "w")
    publisher.flush()


def test_flush_raises_for_what_is_still_on_its_way(publisher: Publisher, producer: FakeProducer) -> None:
    producer.stuck = True
    publisher.submit("acme", "r1", "w")
    with pytest.raises(NotDelivered, match="no answer within 1 s"):
        publisher.flush(1)


def test_leaving_the_block_flushes(producer: FakeProducer) -> None:
    producer.fail_with = KafkaError(KafkaError._MSG_TIMED_OUT)

    def file_one() -> None:
        with Publisher(KAFKA, producer=producer) as publisher:
            publisher.submit("acme", "r1", "w")

    with pytest.raises(NotDelivered):
        file_one()


def test_an_error_in_the_block_is_not_replaced(producer: FakeProducer) -> None:
    producer.fail_with = KafkaError(KafkaError._MSG_TIMED_OUT)

    def file_one_and_fail() -> None:
        with Publisher(KAFKA, producer=producer) as publisher:
            publisher.submit("acme", "r1", "w")
            raise LookupError

    with pytest.raises(LookupError) as caught:
        file_one_and_fail()
    assert "1 records were not taken" in caught.value.__notes__[0]


def test_it_can_be_checked_before_anything_is_filed(publisher: Publisher, producer: FakeProducer) -> None:
    publisher.check()
    producer.topics = []
    with pytest.raises(ConfigError, match="fairstream topics"):
        publisher.check()
    producer.stuck = True
    with pytest.raises(Unavailable):
        publisher.check()


def test_a_tenants_own_topic_takes_only_what_is_in_its_name(producer: FakeProducer) -> None:
    producer.topics = ["p.requests.of.a_2fb"]
    publisher = Publisher(KAFKA, own_topic_of="a/b", producer=producer)
    publisher.check()
    publisher.submit("a/b", "r1", "w")
    publisher.cancel("a/b", "r1")
    with pytest.raises(BadRecord, match="a gate would refuse it") as caught:
        publisher.submit("acme", "r1", "w")
    assert (caught.value.field, caught.value.value) == ("tenant", "acme")
    with pytest.raises(BadRecord):
        publisher.cancel("acme", "r1")
    assert [(topic, key) for topic, key, _ in producer.sent] == [("p.requests.of.a_2fb", b"a/b")] * 2


def test_a_tenant_that_cannot_have_a_topic_is_refused_at_once(producer: FakeProducer) -> None:
    with pytest.raises(BadRecord, match="too long"):
        Publisher(KAFKA, own_topic_of="x" * 250, producer=producer)


def test_a_place_is_what_rejections_call_it() -> None:
    # So that where a run was filed can be compared with where a refused one stood.
    assert client.Position is Position
