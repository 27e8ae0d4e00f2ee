"""Traffic for the scheduler under test: a producer and a fleet of workers in one thread each, reproducible by seed."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from streams import clock
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, SUCCEEDED
from streams.wire import (
    PARTITIONER,
    Assignment,
    decode_dispatch,
    encode_completion,
    encode_request,
    topic_names,
)

_TICK_S: Final = 0.02


def make_producer(servers: str) -> Producer:
    """A producer that loses and doubles nothing, and places keys as the scheduler expects."""
    return Producer(
        {
            "bootstrap.servers": servers,
            "partitioner": PARTITIONER,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.max.bytes": 1_040_000,  # a request may be as large as the broker lets it
            "message.timeout.ms": 120_000,
        }
    )


class Feeder(threading.Thread):
    """Files runs of many tenants at a steady rate until told to stop."""

    def __init__(self, servers: str, prefix: str, *, per_s: int, tenants: int = 40, seed: int = 1) -> None:
        super().__init__(name="feeder", daemon=True)
        self.filed = 0
        self._topic = topic_names(prefix).requests
        self._producer = make_producer(servers)
        self._per_s = per_s
        self._tenants = tenants
        self._random = random.Random(seed)
        self._ending = threading.Event()

    def run(self) -> None:
        begun = clock.monotonic()
        while not self._ending.is_set():
            due = int((clock.monotonic() - begun) * self._per_s)
            while self.filed < due:
                self.file()
            self._producer.poll(0)
            self._ending.wait(_TICK_S)

    def file(self) -> None:
        """File one run; now and then the same one twice, as a producer that retries blindly does."""
        number = self.filed
        self.filed += 1
        tenant = f"tenant-{self._random.randrange(self._tenants)}"
        value = encode_request(
            tenant=tenant,
            run_id=f"run-{number}",
            workflow=f"workflow-{number % 3}",
            payload={"number": number},
        )
        for _ in range(2 if number % 97 == 0 else 1):
            self._producer.produce(self._topic, value, tenant.encode())

    def finish(self) -> None:
        """Stop, and wait until Kafka has everything."""
        self._ending.set()
        if self.is_alive():
            self.join()
        assert self._producer.flush(60) == 0


def tokens_of(run_id: str, attempt: int) -> int:
    """What an attempt spends: always the same, and far from what anybody would guess."""
    return zlib.crc32(f"{run_id}/{attempt}".encode()) % 5_000


class Workers(threading.Thread):
    """Takes every dispatch and reports on it at once: most succeed, some fail or give back their first attempt."""

    def __init__(self, servers: str, prefix: str) -> None:
        super().__init__(name="workers", daemon=True)
        self.reported = 0
        names = topic_names(prefix)
        self._dispatch, self._completions = names.dispatch, names.completions
        self._producer = make_producer(servers)
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{prefix}test-workers",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        self._ending = threading.Event()

    def run(self) -> None:
        partitions = self._consumer.list_topics(self._dispatch, timeout=30).topics[self._dispatch].partitions
        self._consumer.assign([TopicPartition(self._dispatch, number, OFFSET_BEGINNING) for number in partitions])
        while not self._ending.is_set():
            for message in self._consumer.consume(500, _TICK_S):
                if message.error() is None:
                    given = decode_dispatch(message.value())
                    if isinstance(given, Assignment):
                        self._serve(given)
            self._producer.poll(0)
        self._consumer.close()

    def _serve(self, run: Assignment) -> None:
        number = zlib.crc32(run.run_id.encode())
        tokens = tokens_of(run.run_id, run.attempt)
        if number % 11 == 0:
            self._report(run, HEARTBEAT, tokens // 2)
        if run.attempt == 1 and number % 13 == 0:
            self._report(run, FAILED, tokens, retryable=True)
        elif run.attempt == 1 and number % 17 == 0:
            self._report(run, RETURNED, None)
        else:
            self._report(run, SUCCEEDED, tokens)
            if number % 19 == 0:
                self._report(run, SUCCEEDED, tokens)  # a worker that is not sure whether it got through

    def _report(self, run: Assignment, status: str, tokens: int | None, *, retryable: bool = False) -> None:
        value = encode_completion(
            tenant=run.tenant,
            run_id=run.run_id,
            attempt=run.attempt,
            status=status,
            tokens=tokens,
            retryable=retryable,
            shard=run.shard,
        )
        self._producer.produce(self._completions, value, run.tenant.encode())
        self.reported += 1

    def finish(self) -> None:
        self._ending.set()
        self.join()
        assert self._producer.flush(60) == 0


@contextmanager
def traffic(servers: str, prefix: str, *, per_s: int) -> Iterator[tuple[Feeder, Workers]]:
    """A feeder and workers that run while the block does. Finish the feeder in the block to let things drain."""
    feeder, workers = Feeder(servers, prefix, per_s=per_s), Workers(servers, prefix)
    feeder.start()
    workers.start()
    try:
        yield feeder, workers
    finally:
        feeder.finish()
        workers.finish()
