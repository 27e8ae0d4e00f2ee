"""Tells the life of a few shards in memory: its steps are the runtime's and the core's own, Kafka is some lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streams.app.inbox import Batch
from streams.app.step import Stepper
from streams.core.policy import Policy
from streams.intake import Source
from streams.wire import AppliedPolicy, Assignment, decode_dispatch, encode_cancel, encode_completion, encode_request
from tests.integration.arithmetic import Evidence, assemble
from tests.integration.topics import Seen
from tests.unit.app.fakes import NAMES, FakeRecord, FakeWriter, load_from


class Story:
    """Topics as lists of what is seen in them, and the shards that write them."""

    def __init__(
        self, policy: Policy, *, shards: int, now_ms: int = 1_000_000, topic_ids: Mapping[str, str] | None = None
    ) -> None:
        self.now_ms = now_ms
        self._policy = AppliedPolicy(0, "tester", now_ms, policy)
        self._topics: dict[tuple[str, int], list[Seen]] = {}
        self._writers = [FakeWriter() for _ in range(shards)]
        self._shards: list[Stepper] = []
        self.take_over()
        for stepper in self._shards:
            stepper.positions = replace(stepper.positions, topics=dict(topic_ids or {}))

    def take_over(self) -> None:
        """Give every shard a new owner."""
        self._shards = [load_from(writer, shard, len(self._writers))() for shard, writer in enumerate(self._writers)]

    def put(self, topic: str, partition: int, key: bytes | None, value: bytes | None, **headers: bytes) -> None:
        log = self.log(topic, partition)
        log.append(Seen(partition, len(log), self.now_ms, key, value, tuple(headers.items())))

    def ask(self, tenant: str, run_id: str, workflow: str = "w", shard: int = 0, **fields: Any) -> None:
        value = encode_request(tenant=tenant, run_id=run_id, workflow=workflow, **fields)
        self.put(NAMES.requests, shard, tenant.encode(), value)

    def cancel(self, tenant: str, run_id: str, shard: int = 0) -> None:
        self.put(NAMES.requests, shard, tenant.encode(), encode_cancel(tenant=tenant, run_id=run_id))

    def report(self, tenant: str, run_id: str, attempt: int, status: str, shard: int = 0, **fields: Any) -> None:
        """Let a worker report on an attempt."""
        value = encode_completion(tenant=tenant, run_id=run_id, attempt=attempt, status=status, **fields)
        self.put(NAMES.completions, shard, tenant.encode(), value)

    def step(self, after_ms: int = 10) -> None:
        """Let every shard take what has come in."""
        self.now_ms += after_ms
        for shard, stepper in enumerate(self._shards):
            batches = [self._unread(shard, stepper, source) for source in Source]
            changes = [self._policy] if stepper.core.policy_version < self._policy.offset else []
            stepper.step([batch for batch in batches if batch.records], changes, self.now_ms)
            self._write(shard)

    def evidence(self) -> Evidence:
        def of(topic: str) -> list[Seen]:
            return [seen for (name, _), log in sorted(self._topics.items()) if name == topic for seen in log]

        return assemble(
            NAMES,
            len(self._writers),
            requests=of(NAMES.requests),
            completions=of(NAMES.completions),
            dispatch=of(NAMES.dispatch),
            rejected=of(NAMES.rejected),
            journal=of(NAMES.journal),
            state=of(NAMES.state),
        )

    @property
    def rows(self) -> list[dict[bytes, bytes]]:
        """Of each shard, as the state topic keeps them."""
        return [writer.rows for writer in self._writers]

    def log(self, topic: str, partition: int) -> list[Seen]:
        return self._topics.setdefault((topic, partition), [])

    def dispatched(self) -> list[Assignment]:
        decoded = [decode_dispatch(seen.value) for seen in self.log(NAMES.dispatch, 0)]
        return [each for each in decoded if isinstance(each, Assignment)]

    def _unread(self, shard: int, stepper: Stepper, source: Source) -> Batch:
        log = self.log(getattr(NAMES, source.value), shard)[stepper.positions.applied.get(source.value, -1) + 1 :]
        return Batch(source, [FakeRecord(s.offset, s.value, s.key, s.timestamp_ms, s.headers) for s in log], 1)

    def _write(self, shard: int) -> None:
        """Put a step's records where they belong, as the transaction does."""
        step = self._writers[shard].written[-1]
        for key, value in [*step.rows, step.positions]:
            self.put(NAMES.state, shard, key, value)
        for key, value in step.dispatches:
            self.put(NAMES.dispatch, 0, key, value)
        for rejected_key, value in step.rejections:
            self.put(NAMES.rejected, 0, rejected_key, value)
        for each in step.forwards:
            headers = {name: value for name, value in each.headers if isinstance(value, bytes)}
            self.put(each.topic, each.partition, each.key, each.value, **headers)
        assert step.journal is not None
        self.put(NAMES.journal, shard, *step.journal)
