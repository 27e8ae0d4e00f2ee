"""What client tests need of a real Kafka: topics, a hand that dispatches in transactions, and the reports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.topics import Layout, ensure
from streams.client import Worker, WorkerSettings
from streams.core.effects import Dispatch, Revoke
from streams.core.inputs import Completion
from streams.kafka import KafkaSettings
from streams.wire import PARTITIONER, decode_completion, encode_dispatch, encode_revoke
from tests.integration.topics import read_topic

WAIT_S: Final = 60.0
SHARD: Final = 2  # what dispatches say; echoed in reports


class Dispatcher:
    """Writes to the dispatch topic as a shard does: each step one transaction."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._topic = kafka.topics.dispatch
        self._producer = Producer(
            kafka.client(partitioner=PARTITIONER, **{"transactional.id": f"{kafka.prefix}dispatcher", "linger.ms": 0})
        )
        self._producer.init_transactions(WAIT_S)
        self._seq = 0

    def dispatch(self, *run_ids: str, commit: bool = True, **fields: object) -> None:
        """Dispatch runs in one step; without `commit` the step is aborted once all of it is in the topic."""
        self._write([(run_id, self._dispatch(run_id, fields)) for run_id in run_ids], commit=commit)

    def revoke(self, run_id: str, *, tenant: str = "acme", attempt: int = 1) -> None:
        self._seq += 1
        revoke = Revoke(self._seq, tenant, run_id, attempt, "cancelled")
        self._write([(run_id, encode_revoke(revoke, SHARD, self._seq, 1))], commit=True)

    def _dispatch(self, run_id: str, fields: dict[str, object]) -> bytes:
        self._seq += 1
        values: dict[str, object] = {
            "tenant": "acme",
            "workflow": "summarise",
            "class_": "default",
            "attempt": 1,
            "estimate": 100,
            "lease_ms": 60_000,
            "deadline_ms": None,
            "body": b'{"payload":{"tokens":5}}',
            "submitted_ms": 1,
            "round": 1,
            "deficit_before": 0,
            "deficit_after": 0,
            **fields,
        }
        return encode_dispatch(Dispatch(seq=self._seq, run_id=run_id, **values), SHARD, self._seq, 1)  # type: ignore[arg-type] # fields by name

    def _write(self, records: list[tuple[str, bytes]], *, commit: bool) -> None:
        self._producer.begin_transaction()
        for run_id, value in records:
            self._producer.produce(self._topic, value, run_id.encode())
        assert self._producer.flush(WAIT_S) == 0
        if commit:
            self._producer.commit_transaction(WAIT_S)
        else:
            self._producer.abort_transaction(WAIT_S)


class Rig:
    """Topics of a test's own on a real Kafka, and both ends of a worker."""

    def __init__(self, servers: str, prefix: str, *, shards: int = 4, dispatch_partitions: int = 4) -> None:
        self.kafka = KafkaSettings(servers=servers, prefix=prefix)
        layout = Layout(shards=shards, dispatch_partitions=dispatch_partitions, prefix=prefix)
        ensure(admin_client(self.kafka), layout)
        self.dispatcher = Dispatcher(self.kafka)

    def reports(self) -> list[Completion]:
        """All reports so far; in order for each tenant."""
        seen = read_topic(self.kafka.servers, self.kafka.topics.completions)
        return [decode_completion(record.key, record.value, record.offset) for record in seen]

    def wait_for_reports(self, enough: Callable[[list[Completion]], bool], what: str) -> list[Completion]:
        """Wait until what was reported is enough."""
        found: list[Completion] = []

        def look() -> bool:
            found[:] = self.reports()
            return enough(found)

        clock.wait_until(look, WAIT_S, what=what)
        return found

    def wait_for_ends(self, *run_ids: str, status: str = "succeeded") -> list[Completion]:
        """Wait until each of these runs was reported so."""
        return self.wait_for_reports(
            lambda found: set(run_ids) <= {each.run_id for each in found if each.status == status},
            f"{len(run_ids)} runs {status}",
        )


@contextmanager
def serving(worker: Worker) -> Iterator[Worker]:
    """The worker serves in a thread while the block runs; what it raises is raised at the end."""
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            worker.serve()
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)

    thread = threading.Thread(target=serve, name="serving")
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the worker did not stop"
    if errors:
        raise errors[0]


def make_worker(kafka: KafkaSettings, intake: str = "share", **settings: object) -> Worker:
    """A worker without functions."""
    return Worker(kafka, WorkerSettings(intake=intake, **settings))  # type: ignore[arg-type] # settings by name
