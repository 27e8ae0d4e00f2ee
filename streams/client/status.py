"""Reads the status topic: what the shards show of themselves and of each tenant."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from streams import clock
from streams.client.polling import raise_unless_passing
from streams.errors import BadRecord, ConfigError, Unavailable
from streams.kafka import NO_SUCH_TOPIC, KafkaSettings, first_answer, from_exception, mapped_errors
from streams.wire import decode_status

if TYPE_CHECKING:
    from types import TracebackType

    from confluent_kafka import Message

    from streams.wire import Status

_LOG: Final = logging.getLogger("streams.client.status")

_FIRST_READ_S: Final = 30.0  # a compacted topic of some 100,000 tenants
_ANSWER_S: Final = 8.0
_DOING: Final = "reading the status topic"
_BATCH: Final = 1_000
_POLL_S: Final = 0.2


class StatusReader:
    """Follows the status topic and keeps the newest view of each shard and of each of its tenants.

    Not thread-safe. Use as a context manager.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._newest: dict[bytes, Status] = {}
        with mapped_errors(_DOING):
            self._consumer = Consumer(
                kafka.client(
                    group_id=kafka.reader_group,
                    isolation_level="read_committed",
                    **{"enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 100},
                )
            )
            self._consumer.assign([TopicPartition(kafka.topics.status, 0, OFFSET_BEGINNING)])

    @property
    def statuses(self) -> list[Status]:
        """What was seen last of each shard, and of each (shard, class, tenant)."""
        return list(self._newest.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with mapped_errors(_DOING):
            self._consumer.close()

    def catch_up(self, timeout_s: float = _FIRST_READ_S) -> None:
        """Read to the end of what there is now.

        Raises `Unavailable` if the end is not reached within `timeout_s`, `ConfigError` if there is no such topic.
        """
        doing = f"asking {self._kafka.servers} for its topics"
        with mapped_errors(doing):  # an absent Kafka is told sooner so
            ask = partial(self._consumer.list_topics, None)
            found = first_answer(self._kafka, self._consumer, ask, min(timeout_s, _ANSWER_S), doing).topics
        if self._kafka.topics.status not in found:
            raise ConfigError(NO_SUCH_TOPIC, field=self._kafka.topics.status)
        end = clock.monotonic() + timeout_s
        while clock.monotonic() < end:
            if self._read_some():
                return
        raise Unavailable(f"{_DOING}: its end was not reached within {timeout_s:g} s; is Kafka running there?")

    def follow(self, timeout_s: float) -> None:
        """Take in what comes within `timeout_s`."""
        end = clock.monotonic() + timeout_s
        while clock.monotonic() < end:
            self._read_some()

    def _read_some(self) -> bool:
        """Read what is there and say whether it was the last."""
        try:
            first = self._consumer.poll(_POLL_S)
            messages = [] if first is None else [first, *self._consumer.consume(_BATCH, 0)]
        except KafkaException as error:
            raise from_exception(error, _DOING) from error
        at_end = False
        for message in messages:
            trouble = message.error()
            if trouble is None:
                at_end = False
                self._apply(message)
            elif trouble.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                at_end = True
            else:
                raise_unless_passing(trouble, _DOING)
        return at_end

    def _apply(self, message: Message) -> None:
        key, value = message.key() or b"", message.value()
        if value is None:
            self._newest.pop(key, None)
            return
        try:
            self._newest[key] = decode_status(value)
        except BadRecord as bad:  # a view of a newer scheduler: the rest can still be shown
            _LOG.warning("streams.client.status_unreadable offset=%s: %s", message.offset(), bad)
