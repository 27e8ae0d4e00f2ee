"""Whether a deployment gets anywhere, seen from its journal as it is written."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from streams.core.outcomes import LOST
from streams.kafka import KafkaSettings
from streams.wire import decode_journal

_LOOK_S: Final = 0.1


class Progress(NamedTuple):
    """How much has been committed so far."""

    steps: dict[int, int]  # by shard
    dispatched: dict[int, int]  # by shard
    settled: int  # attempts that a worker has said the end of

    def beyond(self, earlier: Progress) -> bool:
        """Whether since then every shard has handed out work, and some of it has come back."""
        return self.settled > earlier.settled and all(
            number > earlier.dispatched[shard] for shard, number in self.dispatched.items()
        )


class Watcher(threading.Thread):
    """Reads the journal (read_committed) while others write it. Use as a context manager."""

    def __init__(self, kafka: KafkaSettings, shards: int) -> None:
        super().__init__(name="watcher", daemon=True)
        self._topic = kafka.topics.journal
        self._shards = shards
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.servers,
                "group.id": f"{kafka.prefix}watcher",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,  # brokers come and go
            }
        )
        self._steps: Counter[int] = Counter()
        self._dispatched: Counter[int] = Counter()
        self._settled = 0
        self._failure: BaseException | None = None
        self._ending = threading.Event()

    def seen(self) -> Progress:
        """What there is. Raises what ended the thread, if it has ended."""
        if self._failure is not None:
            raise self._failure
        shards = range(self._shards)
        return Progress(
            {shard: self._steps[shard] for shard in shards},
            {shard: self._dispatched[shard] for shard in shards},
            self._settled,
        )

    def run(self) -> None:
        try:
            self._consumer.assign(
                [TopicPartition(self._topic, shard, OFFSET_BEGINNING) for shard in range(self._shards)]
            )
            while not self._ending.is_set():
                for message in self._consumer.consume(500, _LOOK_S):
                    if message.error() is None:
                        self._read(message.value())
            self._consumer.close()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._failure = error

    def _read(self, value: bytes | None) -> None:
        entry = decode_journal(value)
        self._steps[entry.shard] += 1
        self._dispatched[entry.shard] += len(entry.decisions)
        self._settled += sum(each.outcome != LOST for each in entry.settlements)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self.join()
