"""What the publisher writes is what the scheduler reads, in the partition where it looks for it."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from streams.client import Publisher
from streams.core.inputs import Cancel, Submit
from streams.errors import ConfigError, NotDelivered
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import decode_request, partition_for
from tests.integration.client_rig import Rig
from tests.integration.topics import read_topic

SHARDS = 4


def test_runs_arrive_in_their_tenants_partition(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix, shards=SHARDS)
    with Publisher(rig.kafka) as publisher:
        for number in range(200):
            publisher.submit(f"tenant-{number % 40}", f"r{number}", "w", {"n": number}, estimate=number)
        publisher.cancel("tenant-1", "r1")
    records = read_topic(kafka.bootstrap, rig.kafka.topics.requests)
    requests = [decode_request(record.key, record.value, record.offset, record.timestamp_ms) for record in records]
    assert all(
        record.partition == partition_for(request.tenant, SHARDS)
        for record, request in zip(records, requests, strict=True)
    )
    submits = {request.run_id: request for request in requests if isinstance(request, Submit)}
    assert {(run_id, submit.estimate) for run_id, submit in submits.items()} == {(f"r{n}", n) for n in range(200)}
    assert [request.run_id for request in requests if isinstance(request, Cancel)] == ["r1"]


def test_a_tenants_runs_keep_their_order(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    with Publisher(rig.kafka) as publisher:
        places = [publisher.submit("acme", f"r{number}", "w") for number in range(500)]
    offsets = [place.result().offset for place in places]
    assert offsets == sorted(offsets)


def test_more_than_the_local_queue_holds_is_waited_for(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    small = KafkaSettings(
        servers=kafka.bootstrap, prefix=prefix, options={"queue.buffering.max.messages": "100", "linger.ms": "0"}
    )
    with Publisher(small) as publisher:
        for number in range(5_000):
            publisher.submit("acme", f"r{number}", "w")
    assert len(read_topic(kafka.bootstrap, rig.kafka.topics.requests)) == 5_000


def test_a_topic_that_does_not_exist_is_told(kafka: LocalKafka, prefix: str) -> None:
    settings = KafkaSettings(
        servers=kafka.bootstrap, prefix=prefix, options={"topic.metadata.propagation.max.ms": "500"}
    )
    publisher = Publisher(settings)
    delivery = publisher.submit("acme", "r1", "w")
    with pytest.raises(ConfigError, match="fairstream topics"):
        delivery.result(60)
    with pytest.raises(NotDelivered, match="1 records"):
        publisher.flush()
    assert settings.topics.requests not in AdminClient(settings.client()).list_topics(timeout=30).topics
