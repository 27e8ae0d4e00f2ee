"""Hears of attempts that are not wanted any more, whoever has them.

In a share group a revocation goes to any one worker, hardly ever to the one that has the attempt. So each worker also
reads the dispatch topic for itself, from where it ends when the worker starts, and looks at the revocations only.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from streams.client.intake import decode_or_skip
from streams.client.polling import raise_unless_passing
from streams.kafka import KafkaSettings, from_exception, mapped_errors
from streams.wire import Revocation

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streams.client.run import RunKey

# Revoked attempts that may still be handed to this worker. Older ones are forgotten: such an attempt is then done in
# vain, and costs its tenant what it costs.
REMEMBERED: Final = 10_000

# Stands in every revocation, and hardly ever in anything else: spares decoding the dispatches.
_MARK: Final = b"revoke"

_POLL_S: Final = 0.2
_BATCH: Final = 500
_METADATA_S: Final = 15.0


class Revoked:
    """The attempts revoked lately. Thread-safe."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._keys: dict[RunKey, None] = {}  # oldest first
        self._lock = Lock()

    def add(self, key: RunKey) -> None:
        with self._lock:
            self._keys[key] = None
            if len(self._keys) > self._remembered:
                del self._keys[next(iter(self._keys))]

    def __contains__(self, key: RunKey) -> bool:
        with self._lock:
            return key in self._keys


class Revocations:
    """The thread that reads them."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Take up the position; nothing that is written from here on is missed.

        Raises `Unavailable`, or `ConfigError` if the topic does not exist.
        """
        self._stop = Event()
        self._consumer = _consumer_at_end(kafka)
        self._thread: Thread | None = None

    def start(self, revoked: Callable[[Revocation], None], died: Callable[[BaseException], None]) -> None:
        """Begin to call `revoked` for each; or `died`, if the thread ends by an error."""
        self._thread = Thread(target=self._run, args=(revoked, died), name="fairstream-revocations", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; within a fraction of a second."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        else:
            self._consumer.close()

    def _run(self, revoked: Callable[[Revocation], None], died: Callable[[BaseException], None]) -> None:
        try:
            with mapped_errors("reading revocations"):
                while not self._stop.is_set():
                    first = self._consumer.poll(_POLL_S)
                    if first is not None:
                        for message in [first, *self._consumer.consume(_BATCH, 0)]:
                            revocation = _read(message)
                            if revocation is not None:
                                revoked(revocation)
                self._consumer.close()
        except BaseException as error:  # noqa: BLE001 - whatever it is, a worker that no longer listens must stop
            died(error)


def _read(message: Message) -> Revocation | None:
    error = message.error()
    if error is not None:
        raise_unless_passing(error, "reading revocations")
        return None
    value = message.value()
    record = decode_or_skip(message) if value is not None and _MARK in value else None
    return record if isinstance(record, Revocation) else None


def _consumer_at_end(kafka: KafkaSettings) -> Consumer:
    topic = kafka.topics.dispatch
    with mapped_errors("opening the reader of revocations"):
        consumer = Consumer(
            kafka.client(
                group_id=kafka.reader_group,
                isolation_level="read_committed",
                **{"enable.auto.commit": False, "auto.offset.reset": "latest", "fetch.wait.max.ms": 100},
            )
        )
        try:
            partitions = consumer.list_topics(topic, timeout=_METADATA_S).topics[topic].partitions
            ends = [
                TopicPartition(
                    topic,
                    number,
                    # Without a limit it waits for ever where a partition has no leader.
                    consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_METADATA_S)[1],
                )
                for number in partitions
            ]
            consumer.assign(ends or [TopicPartition(topic, 0, OFFSET_END)])
        except KafkaException as error:
            consumer.close()
            raise from_exception(error, "opening the reader of revocations") from error
    return consumer
