"""The topics of a deployment as they stand in Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from streams.audit.recording import Rec
from streams.errors import ConfigError
from streams.headers import headers_of
from streams.inputs import inputs
from streams.intake import Source
from streams.kafka import NO_SUCH_TOPIC, first_answer, mapped_errors
from streams.partition import bounds, open_reader, read_to_end

if TYPE_CHECKING:
    from confluent_kafka import Message

    from streams.kafka import KafkaSettings

_FOREIGN: Final = frozenset(Source)  # topics that others than schedulers write
_ASK_S: Final = 30.0  # for the first answer: a Kafka that is just starting is waited for


class KafkaRecording:
    """A `Recording`. It grows while schedulers run: what is read to the end is read to where that is then."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Ask Kafka for the topics.

        Raises:
            ConfigError: there is no such deployment, or no right to see it.
            Unavailable: Kafka does not answer.
        """
        self._kafka: Final = kafka
        doing = f"asking {kafka.servers} for its topics"
        with mapped_errors(doing), open_reader(kafka, f"{kafka.prefix}auditor") as consumer:
            found = first_answer(
                kafka, consumer, lambda timeout_s: consumer.list_topics(timeout=timeout_s), _ASK_S, doing
            )
        self._partitions: Final = {name: len(topic.partitions) for name, topic in found.topics.items()}
        for topic in ("requests", "journal"):
            if not self.partitions(topic):
                raise ConfigError(NO_SUCH_TOPIC, field=kafka.prefix + topic)

    @property
    def prefix(self) -> str:
        """See `Recording`."""
        return self._kafka.prefix

    @property
    def shards(self) -> int:
        """See `Recording`."""
        return self.partitions("requests")

    def partitions(self, topic: str) -> int:
        """See `Recording`."""
        return self._partitions.get(self.prefix + topic, 0)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        """See `Recording`. Raises as `read_to_end` does.

        What no client can read of the inputs is left out; the journal says where a scheduler found such.
        """
        with open_reader(self._kafka, f"{self.prefix}auditor") as consumer:
            name = self.prefix + topic
            first, _ = bounds(consumer, name, partition)
            found: Iterator[Message] = read_to_end(consumer, name, partition, max(start, first))
            if topic in _FOREIGN:
                every = inputs(consumer, name, partition, max(start, first))
                found = (message for _, message in every if message is not None)
            for message in found:
                record = _record_of(message)
                if stop is not None and record.offset >= stop:
                    return
                yield record

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Recording`."""
        with open_reader(self._kafka, f"{self.prefix}auditor") as consumer:
            return bounds(consumer, self.prefix + topic, partition)


def _record_of(message: Message) -> Rec:
    offset, headers = message.offset(), headers_of(message)
    assert offset is not None, "a consumed record has an offset"
    _, timestamp = message.timestamp()
    told = tuple((name, value or b"") for name, value in headers or ())
    return Rec(offset, timestamp, message.key(), message.value(), told, headers is not None)
