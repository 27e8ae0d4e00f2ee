"""Writes records to Kafka: idempotent, keyed as Java clients key, and patient when the local queue is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from streams import clock
from streams.errors import ConfigError, Unavailable
from streams.kafka import NO_SUCH_TOPIC, KafkaSettings, first_answer, from_exception, mapped_errors
from streams.wire import PARTITIONER

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined] # exported nowhere by name

OnDelivery = Callable[[KafkaError | None, "Message"], None]

# How long a record may wait for its acknowledgement before it counts as lost. A broker that restarts is back
# within seconds; a result that comes later than this finds its lease expired anyway.
DELIVERY_TIMEOUT_MS: Final = 120_000

_SETTINGS: Final[dict[str, object]] = {
    "enable.idempotence": True,  # acks=all, no record twice, no reordering when one is sent again
    "partitioner": PARTITIONER,
    "linger.ms": 2,  # a batch's worth of company; adds at most this much latency
    "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
    "retry.backoff.ms": 20,  # librdkafka's 100 ms and up would be most of a short outage
    "retry.backoff.max.ms": 1_000,
}

_POLL_S: Final = 0.05  # a full queue is looked at this often


class ProducerLike(Protocol):
    """The part of `confluent_kafka.Producer` that is used here."""

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: OnDelivery | None) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def flush(self, timeout: float) -> int: ...

    def list_topics(self, *, timeout: float) -> ClusterMetadata: ...

    def __len__(self) -> int: ...


def make_producer(kafka: KafkaSettings, *, report_success: bool) -> ProducerLike:
    """Return a producer with our settings. Without `report_success` only failures are called back."""
    with mapped_errors(f"connecting to {kafka.servers}"):
        producer: ProducerLike = Producer(
            kafka.client(**_SETTINGS, **{"delivery.report.only.error": not report_success})
        )
    return producer


def check_topic(kafka: KafkaSettings, producer: ProducerLike, topic: str, timeout_s: float) -> None:
    """Raise `Unavailable` if Kafka does not answer within `timeout_s`, `ConfigError` if it has no such topic for us."""
    doing = f"asking {kafka.servers} for its topics"
    with mapped_errors(doing):
        found = first_answer(
            kafka, producer, lambda slice_s: producer.list_topics(timeout=slice_s), timeout_s, doing
        ).topics
    if topic not in found:
        raise ConfigError(NO_SUCH_TOPIC, field="topic", value=topic)


class Sender:
    """Puts records into a producer's local queue. Thread-safe, as the producer is."""

    def __init__(self, producer: ProducerLike, *, queue_wait_s: float = 30.0) -> None:
        self._producer = producer
        self._queue_wait_s = queue_wait_s

    def send(self, topic: str, key: str, value: bytes, on_delivery: OnDelivery | None = None) -> None:
        """Queue a record. While the queue is full, wait.

        Raises `Unavailable` once the queue has stayed full for `queue_wait_s`: Kafka takes nothing. The record
        is then not queued, and `on_delivery` is never called.
        """
        try:
            self._try(topic, key, value, on_delivery)
        except BufferError:
            self._wait_and_send(topic, key, value, on_delivery)
        self._producer.poll(0)

    def poll(self, timeout_s: float = 0.0) -> None:
        """Call back for the records delivered so far, waiting up to `timeout_s` for the first."""
        self._producer.poll(timeout_s)

    def flush(self, timeout_s: float) -> int:
        """Wait until everything queued is delivered or has failed; return how much is left after `timeout_s`."""
        return self._producer.flush(timeout_s)

    def _wait_and_send(self, topic: str, key: str, value: bytes, on_delivery: OnDelivery | None) -> None:
        end = clock.monotonic() + self._queue_wait_s
        while True:
            self._producer.poll(_POLL_S)
            try:
                self._try(topic, key, value, on_delivery)
            except BufferError:
                if clock.monotonic() >= end:
                    raise Unavailable(
                        f"sending to {topic}: the local queue of {len(self._producer)} records has been full "
                        f"for {self._queue_wait_s:g} s; is Kafka running there?"
                    ) from None
            else:
                return

    def _try(self, topic: str, key: str, value: bytes, on_delivery: OnDelivery | None) -> None:
        try:
            self._producer.produce(topic, value, key.encode(), on_delivery=on_delivery)
        except KafkaException as error:
            raise from_exception(error, f"sending to {topic}") from error
