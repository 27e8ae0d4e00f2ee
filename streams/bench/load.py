"""The load of the end-to-end benchmark, one process each: a producer of requests, and a fleet that does no work.

`python -m streams.bench.load feed|serve SERVERS PREFIX RUNS [TENANTS]`. The fleet reports every dispatch as
succeeded as soon as it sees it, and ends after RUNS of them; its cost is part of what is measured.
"""

from __future__ import annotations

import sys
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from streams.bench.bare import TOKENS, WORKFLOW
from streams.errors import FairstreamError
from streams.kafka import KafkaSettings, mapped_errors
from streams.wire import PARTITIONER, Assignment, decode_dispatch, encode_completion, encode_request

_BATCH: Final = 1_000  # records a poll asks for
PAYLOAD: Final = {"prompt": "x" * 200}
_POLL_S: Final = 0.05
_ANSWER_S: Final = 15.0
_QUEUED: Final = 1_000_000  # more runs than a benchmark has: the producer's queue is never full


def _producer(kafka: KafkaSettings) -> Producer:
    conf = kafka.client(
        acks="all",
        enable_idempotence=True,
        partitioner=PARTITIONER,
        linger_ms=5,
        queue_buffering_max_messages=_QUEUED,
        delivery_report_only_error=True,
    )
    return Producer({**conf, "on_delivery": _fail})


def _fail(error: object, _message: object) -> None:
    if error is not None:
        raise FairstreamError(f"a record of the benchmark was not delivered: {error}")


def feed(kafka: KafkaSettings, runs: int, tenants: int) -> None:
    """Publish `runs` requests as fast as Kafka takes them, in turn from `tenants` tenants."""
    producer, topic = _producer(kafka), kafka.topics.requests
    for number in range(runs):
        tenant = f"tenant-{number % tenants}"
        value = encode_request(tenant=tenant, run_id=f"run-{number}", workflow=WORKFLOW, payload=PAYLOAD)
        producer.produce(topic, value, tenant.encode())
        if number % _BATCH == 0:
            producer.poll(0)
    producer.flush()


def serve(kafka: KafkaSettings, runs: int) -> None:
    """Answer dispatches until `runs` of them have been seen."""
    producer, topic = _producer(kafka), kafka.topics.completions
    consumer = Consumer(
        kafka.client(
            group_id="unused",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_wait_max_ms=10,
        )
    )
    dispatch = consumer.list_topics(kafka.topics.dispatch, timeout=_ANSWER_S).topics[kafka.topics.dispatch]
    consumer.assign([TopicPartition(dispatch.topic, number, OFFSET_BEGINNING) for number in dispatch.partitions])
    left = runs
    while left > 0:
        for message in consumer.consume(_BATCH, _POLL_S):
            if message.error() is not None:
                raise FairstreamError(f"reading dispatches: {message.error()}")
            given = decode_dispatch(message.value())
            if isinstance(given, Assignment):
                left -= 1
                done = encode_completion(
                    tenant=given.tenant,
                    run_id=given.run_id,
                    attempt=given.attempt,
                    status="succeeded",
                    tokens=TOKENS,
                    shard=given.shard,
                )
                producer.produce(topic, done, given.tenant.encode())
        producer.poll(0)
    producer.flush()
    consumer.close()


def main(arguments: list[str]) -> None:
    """Run one of the two."""
    role, servers, prefix, runs, *more = arguments
    kafka = KafkaSettings(servers=servers, prefix=prefix)
    with mapped_errors(f"the benchmark's {role}"):
        if role == "feed":
            feed(kafka, int(runs), int(more[0]))
        else:
            serve(kafka, int(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
