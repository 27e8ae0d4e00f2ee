"""A short life of two shards in memory, with everything in it that the arithmetic speaks of.

The steps are real ones, of the runtime and the core; only Kafka is a handful of lists.
"""

from __future__ import annotations

from typing import Any

from streams.app.inbox import Batch, Source
from streams.app.step import Stepper
from streams.core.inputs import SetPolicy
from streams.core.policy import Leases, Policy, TenantRules, Window
from streams.wire import Assignment, decode_dispatch, encode_cancel, encode_completion, encode_request
from tests.integration.arithmetic import Evidence, assemble
from tests.integration.topics import Seen
from tests.unit.app.fakes import NAMES, FakeRecord, FakeWriter, load_from, tenant_of

SHARDS = 2
LEASE_MS = 10_000
ACME, OTHER = tenant_of(0, SHARDS), tenant_of(1, SHARDS)  # ACME's shard is the one that the story is about
POLICY = Policy(
    name="story",
    window=Window(runs=8),
    leases=Leases(lease_ms=LEASE_MS, min_lease_ms=1, backoff_ms=100, max_backoff_ms=100, max_attempts=5),
    tenants={OTHER: TenantRules(max_queued_runs=1, max_runs_in_flight=1)},
)


class Story:
    """Topics as lists of what is seen in them, and the shards that write them."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self._topics: dict[tuple[str, int], list[Seen]] = {}
        self._writers = [FakeWriter() for _ in range(SHARDS)]
        self._shards: list[Stepper] = []
        self.take_over()

    def take_over(self) -> None:
        """Give every shard a new owner."""
        self._shards = [load_from(writer, shard, SHARDS)() for shard, writer in enumerate(self._writers)]

    def put(self, topic: str, partition: int, key: bytes | None, value: bytes | None, **headers: bytes) -> None:
        log = self._log(topic, partition)
        log.append(Seen(partition, len(log), self.now_ms, key, value, tuple(headers.items())))

    def ask(self, tenant: str, run_id: str, shard: int = 0, **fields: Any) -> None:
        value = encode_request(tenant=tenant, run_id=run_id, workflow="w", **fields)
        self.put(NAMES.requests, shard, tenant.encode(), value)

    def cancel(self, tenant: str, run_id: str, shard: int = 0) -> None:
        self.put(NAMES.requests, shard, tenant.encode(), encode_cancel(tenant=tenant, run_id=run_id))

    def report(self, run_id: str, attempt: int, status: str, tokens: int | None = None, **fields: Any) -> None:
        """What a worker of ACME's says."""
        value = encode_completion(tenant=ACME, run_id=run_id, attempt=attempt, status=status, tokens=tokens, **fields)
        self.put(NAMES.completions, 0, ACME.encode(), value)

    def step(self, after_ms: int = 10) -> None:
        """Let every shard take what has come in."""
        self.now_ms += after_ms
        for shard, stepper in enumerate(self._shards):
            batches = [self._unread(shard, stepper, source) for source in Source]
            stepper.step([batch for batch in batches if batch.records], [SetPolicy(0, POLICY)], self.now_ms)
            self._write(shard)

    def serve(self) -> None:
        """Let whatever is dispatched succeed, until nothing is left."""
        settled: set[tuple[str, str, int]] = set()
        for _ in range(2):  # what is dispatched, and what that makes room for
            self.step(200)
            for each in self._dispatched():
                attempt = (each.tenant, each.run_id, each.attempt)
                if attempt not in settled and attempt != (ACME, "silent", 1):
                    settled.add(attempt)
                    value = encode_completion(
                        tenant=each.tenant, run_id=each.run_id, attempt=each.attempt, status="succeeded", tokens=7
                    )
                    self.put(NAMES.completions, each.shard, each.tenant.encode(), value)
        self.step()

    def evidence(self) -> Evidence:
        def of(topic: str) -> list[Seen]:
            return [seen for (name, _), log in sorted(self._topics.items()) if name == topic for seen in log]

        return assemble(
            NAMES,
            SHARDS,
            requests=of(NAMES.requests),
            completions=of(NAMES.completions),
            dispatch=of(NAMES.dispatch),
            rejected=of(NAMES.rejected),
            journal=of(NAMES.journal),
            state=of(NAMES.state),
        )

    def _log(self, topic: str, partition: int) -> list[Seen]:
        return self._topics.setdefault((topic, partition), [])

    def _dispatched(self) -> list[Assignment]:
        decoded = [decode_dispatch(seen.value) for seen in self._log(NAMES.dispatch, 0)]
        return [each for each in decoded if isinstance(each, Assignment)]

    def _unread(self, shard: int, stepper: Stepper, source: Source) -> Batch:
        log = self._log(getattr(NAMES, source.value), shard)[stepper.positions.applied.get(source.value, -1) + 1 :]
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


def told() -> Evidence:
    """The story: runs that succeed, fail, fall silent, are cancelled, refused, doubled, unreadable and gone astray."""
    story = Story()
    for run_id in ("good", "good", "failing", "silent", "unwanted", "regretted"):
        story.ask(ACME, run_id)
    story.cancel(ACME, "unwanted")
    story.put(NAMES.requests, 0, None, b"{")
    story.put(NAMES.completions, 0, None, b"{")
    story.ask(OTHER, "astray")
    story.step()
    story.report("good", 1, "succeeded", 70)
    story.report("failing", 1, "failed", 40, retryable=True)
    story.cancel(ACME, "regretted")
    for run_id in ("crowd-1", "crowd-2"):  # one place is taken by the run that was astray, one may wait
        story.ask(OTHER, run_id, shard=1)
    story.step(4_000)
    story.report("silent", 1, "heartbeat", 5)
    story.step(1_000)
    story.take_over()
    story.step(60_000)  # an outage: nobody's lease runs
    story.report("regretted", 1, "failed", 30)
    story.step(LEASE_MS)  # the silent one is given up
    story.report("silent", 1, "failed", 90)  # and heard of after all
    story.step()
    story.serve()
    return story.evidence()
