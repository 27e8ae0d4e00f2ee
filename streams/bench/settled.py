"""When runs were settled, read from the journal after the fact: measuring adds nothing to what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from streams import clock
from streams.errors import Unavailable
from streams.kafka import from_kafka, mapped_errors
from streams.wire import decode_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.kafka import KafkaSettings

_POLL_S: Final = 0.5
_BATCH: Final = 500


class Settled(NamedTuple):
    """What the topics say of a benchmark's runs."""

    steps: int  # that settled a run
    first_ms: int  # when the first request was published
    last_ms: int  # when the last step that settled a run was written


def read_settlements(kafka: KafkaSettings, shards: int, runs: int, deadline_s: float) -> Settled:
    """Read the journal until `runs` are settled. Raises `Unavailable` at the deadline, with how far it came."""
    found, steps, last_ms = 0, 0, 0
    end = clock.monotonic() + deadline_s
    with mapped_errors("reading the journal"):
        for message in _messages(kafka, kafka.topics.journal, shards):
            if message is not None:
                settlements = decode_journal(message.value()).settlements
                if settlements:
                    found, steps = found + len(settlements), steps + 1
                    last_ms = max(last_ms, message.timestamp()[1])
            if found >= runs:
                return Settled(steps, _first_request_ms(kafka, shards, end), last_ms)
            if clock.monotonic() > end:
                break
    raise Unavailable(f"only {found} of {runs} runs were settled in {deadline_s:g} s")


def _first_request_ms(kafka: KafkaSettings, shards: int, end: float) -> int:
    """Return the time of the earliest first request of a partition; one without any does not count."""
    firsts: dict[int | None, int] = {}
    for message in _messages(kafka, kafka.topics.requests, shards):
        if message is not None:
            firsts.setdefault(message.partition(), message.timestamp()[1])
        if len(firsts) == shards or clock.monotonic() > end or (firsts and message is None):
            break
    return min(firsts.values())


def _messages(kafka: KafkaSettings, topic: str, partitions: int) -> Iterator[Message | None]:
    """Yield a topic from its beginning; None whenever nothing came for a while."""
    consumer = Consumer(kafka.client(group_id="unused", enable_auto_commit=False, isolation_level="read_committed"))
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        while True:
            batch = consumer.consume(_BATCH, _POLL_S)
            for message in batch:
                error = message.error()
                if error is not None:
                    raise from_kafka(error, f"reading {topic}")
                yield message
            if not batch:
                yield None
    finally:
        consumer.close()
