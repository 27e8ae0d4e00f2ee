"""When runs were settled, read from the journal after the fact: measuring adds nothing to what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from streams import clock
from streams.errors import Unavailable
from streams.kafka import from_kafka, mapped_errors
from streams.wire import decode_journal

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

_POLL_S: Final = 0.5
_BATCH: Final = 500


class Settled(NamedTuple):
    """What the journal says of a benchmark's runs."""

    runs: int
    steps: int
    last_ms: int  # when the last step that settled a run was written


def wait_for_settlements(kafka: KafkaSettings, shards: int, runs: int, deadline_s: float) -> Settled:
    """Read the journal until `runs` are settled. Raises `Unavailable` at the deadline, with how far it came."""
    found, steps, last_ms = 0, 0, 0
    end = clock.monotonic() + deadline_s
    with mapped_errors("reading the journal"):
        consumer = Consumer(kafka.client(group_id="unused", enable_auto_commit=False, isolation_level="read_committed"))
        consumer.assign([TopicPartition(kafka.topics.journal, shard, OFFSET_BEGINNING) for shard in range(shards)])
        while found < runs:
            if clock.monotonic() > end:
                raise Unavailable(f"only {found} of {runs} runs were settled in {deadline_s:g} s")
            for message in consumer.consume(_BATCH, _POLL_S):
                error = message.error()
                if error is not None:
                    raise from_kafka(error, "reading the journal")
                entry = decode_journal(message.value())
                steps += 1
                if entry.settlements:
                    found += len(entry.settlements)
                    last_ms = max(last_ms, message.timestamp()[1])
        consumer.close()
    return Settled(found, steps, last_ms)
