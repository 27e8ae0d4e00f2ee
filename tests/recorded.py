"""A deployment's topics as an auditor finds them, made without Kafka: real steps on a virtual clock, recorded.

Producers, workers and owners are played, seeded: they err as real ones do. Requests come twice, astray, unreadable or
too late; runs fail, are returned, or never heard of again; owners change in the middle, and steps are aborted.
Offsets have gaps where Kafka keeps a transaction's marker, or what an aborted one has left.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, Final

from streams.app.inbox import Batch
from streams.app.step import Stepper
from streams.app.transaction import StepRecords
from streams.audit.recording import MemoryRecording, Rec
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.core.policy import Leases, Limits, Policy, PriorityClass, TenantRules, Window
from streams.errors import StepAborted
from streams.intake import Source
from streams.intake.unread import HEADERS, mark
from streams.wire import (
    AppliedPolicy,
    Assignment,
    PolicyChange,
    decode_dispatch,
    encode_cancel,
    encode_completion,
    encode_policy,
    encode_request,
    murmur2,
    partition_for,
)
from tests.unit.app.fakes import load_from

BEGIN_MS: Final = 1_764_000_000_000
CLASSES: Final = ("default", "batch")
WORKFLOWS: Final = ("agent", "chat")
NEVER: Final = 1 << 60

_RECENT: Final = 12  # runs: of those some are in flight
_DRAINED_WITHIN: Final = 3_000  # ticks


def first_policy(tenants: int = 8) -> Policy:
    """The rules that a recording begins with; three changes follow."""
    return Policy(
        name="default",
        quantum=500,
        window=Window(runs=12, tokens=20_000),
        classes=tuple(PriorityClass(name=name, default_estimate=400) for name in CLASSES),
        tenants={f"t{number}": TenantRules(weight=1 + number % 4) for number in range(tenants)},
        limits=Limits(max_queued_runs=200),
        leases=Leases(
            lease_ms=3_000, min_lease_ms=1_000, max_lease_ms=9_000, max_attempts=3, backoff_ms=20, max_backoff_ms=200
        ),
    )


def policies(tenants: int = 8) -> list[Policy]:
    """The rules in the order in which they are stated: other weights, a smaller window, tenants with limits."""
    first = first_policy(tenants)
    heavier = dict(first.tenants) | {"t0": TenantRules(weight=6), "t1": TenantRules(weight=3, max_queued_runs=3)}
    capped = heavier | {"t2": TenantRules(weight=2, max_runs_in_flight=1), "t3": TenantRules(weight=1, paused=True)}
    return [
        first,
        replace(first, tenants=heavier),
        replace(first, tenants=capped, quantum=300, window=Window(runs=8, tokens=None)),
        replace(first, tenants=heavier, window=Window(runs=16, tokens=20_000)),
    ]


def record(
    seed: int = 1, *, shards: int = 2, ticks: int = 160, tenants: int = 8, takeovers: int = 4, drain: bool = True
) -> MemoryRecording:
    """Return what the topics hold after so many ticks of 1 to 120 ms, and once all is served if it is to `drain`."""
    recorder = Recorder(random.Random(seed), shards, tenants)
    stated = policies(tenants)
    recorder.state_policy(stated[0])
    for tick in range(ticks):
        if tick and tick % (ticks // len(stated) + 1) == 0:
            recorder.state_policy(stated[tick // (ticks // len(stated) + 1)])
        recorder.file()
        if tick % (ticks // (takeovers + 1) + 1) == 0:
            recorder.change_owner()
        recorder.tick()
    if drain:
        recorder.drain()
    return recorder.recording


@dataclass
class _Owner:
    """What a shard's owner has in memory."""

    stepper: Stepper
    read: dict[Source, int]  # the next offset of each input


class _Topics:
    """One shard's side of the topics: what `load_from` wants of a writer."""

    def __init__(self, recorder: Recorder, shard: int) -> None:
        self._recorder = recorder
        self._shard = shard

    @property
    def rows(self) -> dict[bytes, bytes]:
        """The state topic's partition, compacted."""
        rows: dict[bytes, bytes] = {}
        for each in self._recorder.recording.read("state", self._shard):
            assert each.key is not None
            if each.value is None:
                rows.pop(each.key, None)
            else:
                rows[each.key] = each.value
        return rows

    def fence(self) -> None:
        """Nobody else is there."""

    def give_up(self) -> None:
        """Nothing blocks."""

    def write(self, records: StepRecords) -> None:
        """Write as `KafkaWriter` does, or leave nothing but a gap."""
        recorder, shard = self._recorder, self._shard
        aborted = recorder.random.random() < recorder.abort_chance
        written = recorder.begin(keep=not aborted)
        for key, value in records.rows:
            written("state", shard, key, value)
        for key, value in records.dispatches:
            written("dispatch", recorder.shards - 1 - shard, key, value)
        for refused_key, value in records.rejections:
            written("rejected", murmur2(refused_key or b"") % recorder.shards, refused_key, value)
        for forward in records.forwards:
            headers = tuple((name, _bytes(value)) for name, value in forward.headers)
            topic = forward.topic.removeprefix(recorder.recording.prefix)
            written(topic, forward.partition, forward.key, forward.value, headers)
        if records.journal is not None:
            written("journal", shard, *records.journal)
        written("state", shard, *records.positions)
        recorder.end()
        if aborted:
            raise StepAborted("the step was not written: so the seed says")
        recorder.hand_out(records.dispatches)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


@dataclass
class Recorder:
    """Plays everybody, and keeps what was written."""

    random: random.Random
    shards: int
    tenants: int
    abort_chance: float = 0.03
    now_ms: int = BEGIN_MS
    recording: MemoryRecording = field(init=False)
    _next: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _touched: set[tuple[str, int]] = field(default_factory=set)
    _keep: bool = True
    _stated: list[AppliedPolicy] = field(default_factory=list)
    _owners: dict[int, _Owner] = field(default_factory=dict)
    _writers: dict[int, _Topics] = field(default_factory=dict)
    _due: list[tuple[int, int, Assignment, str]] = field(default_factory=list)  # heap: ms, tiebreaker, status
    _filed: int = 0
    _recent: list[tuple[str, str]] = field(default_factory=list)  # runs, as they were filed
    _told: int = 0

    def __post_init__(self) -> None:
        self.recording = MemoryRecording(shards=self.shards)
        self._writers = {shard: _Topics(self, shard) for shard in range(self.shards)}
        for topic, partitions in [("policy", 1), *((name, self.shards) for name in _SHARDED)]:
            for partition in range(partitions):
                self.recording.topics[topic, partition] = []

    # --- the topics

    def begin(self, *, keep: bool) -> Any:
        self._keep = keep
        return self.write

    def end(self) -> None:
        """A marker of the transaction takes an offset in every partition that it has touched."""
        for place in self._touched:
            self._next[place] += 1
        self._touched.clear()
        self._keep = True

    def write(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
        *,
        readable: bool = True,
    ) -> None:
        place = topic, partition
        offset = self._next[place]
        self._next[place] += 1
        self._touched.add(place)
        if self._keep:
            self.recording.topics[place].append(Rec(offset, self.now_ms, key, value, headers, readable))

    def _send(self, topic: str, tenant: str, value: bytes | None, **more: Any) -> None:
        """As a producer does; now and then to a partition that is not the tenant's."""
        partition = partition_for(tenant, self.shards)
        if self.random.random() < 0.02:
            partition = self.random.randrange(self.shards)
        self.write(topic, partition, tenant.encode(), value, **more)
        self._touched.clear()  # it has no transaction

    # --- the people

    def state_policy(self, policy: Policy) -> None:
        change = PolicyChange(policy, "an operator", self.now_ms)
        self._stated.append(AppliedPolicy(self._next["policy", 0], change.author, change.applied_ms, policy))
        self.write("policy", 0, policy.name.encode(), encode_policy(change))
        self._touched.clear()

    def file(self) -> None:
        """Producers: some requests, of which few are not as they should be."""
        draw = self.random
        for _ in range(draw.randint(0, 5)):
            tenant = f"t{min(draw.randrange(self.tenants), draw.randrange(self.tenants))}"
            chance = draw.random()
            if chance < 0.02:
                self._send("requests", tenant, draw.choice((b"{", b"", None, b'{"run_id":1}')))
            elif chance < 0.03:
                self._send("requests", tenant, self._request(tenant), readable=False)
            elif chance < 0.07 and self._recent:
                tenant, run_id = draw.choice(self._recent[-_RECENT:])
                self._send("requests", tenant, encode_cancel(tenant=tenant, run_id=run_id))
            else:
                value = self._request(tenant)
                for _ in range(2 if draw.random() < 0.03 else 1):
                    self._send("requests", tenant, value)

    def _request(self, tenant: str) -> bytes:
        draw = self.random
        self._filed += 1
        self._recent.append((tenant, f"r{self._filed}"))
        return encode_request(
            tenant=tenant,
            run_id=f"r{self._filed}",
            workflow=draw.choice(WORKFLOWS),
            class_=draw.choice((None, None, *CLASSES)),
            estimate=draw.choice((None, draw.randint(50, 2_000))),
            max_tokens=draw.choice((None, None, 3_000)),
            not_before_ms=draw.choice((None, None, None, self.now_ms + draw.randint(0, 2_000))),
            deadline_ms=draw.choice((None, None, None, None, self.now_ms + draw.randint(-100, 6_000))),
            payload={"number": self._filed},
        )

    def hand_out(self, dispatches: Sequence[tuple[bytes, bytes]]) -> None:
        """Workers: what will become of each attempt."""
        draw = self.random
        for _, value in dispatches:
            given = decode_dispatch(value)
            if not isinstance(given, Assignment) or draw.random() < 0.03:
                continue  # lost: its lease will run out
            begins = self.now_ms + draw.randint(1, 60)
            ends = begins + draw.randint(20, 1_500)
            status = draw.choices((SUCCEEDED, FAILED, RETURNED), (90, 6, 4))[0]
            reports = [(begins, STARTED), ((begins + ends) // 2, HEARTBEAT), (ends, status)]
            reports += [(ends + draw.randint(1, 900), status)] if draw.random() < 0.04 else []
            for due_ms, said in reports[draw.random() < 0.05 :]:
                self._told += 1
                heappush(self._due, (due_ms, self._told, given, said))

    def _report(self) -> None:
        draw = self.random
        while self._due and self._due[0][0] <= self.now_ms:
            _, _, given, status = heappop(self._due)
            tokens = None if status == STARTED or draw.random() < 0.05 else draw.randint(0, 1_500)
            retryable = status == FAILED and draw.random() < 0.7
            value = encode_completion(
                tenant=given.tenant,
                run_id=given.run_id,
                attempt=given.attempt,
                status=status,
                tokens=tokens,
                retryable=retryable,
                error="it broke" if status == FAILED else None,
                worker="w1",
            )
            self._send("completions", given.tenant, b"not JSON" if draw.random() < 0.005 else value)

    # --- the owners

    def change_owner(self) -> None:
        """Whoever serves a shard dies."""
        self._owners.pop(self.random.randrange(self.shards), None)

    def tick(self) -> None:
        """Let time pass, and every shard that has a reason take a step."""
        self.now_ms += self.random.randint(1, 120)
        self._report()
        for shard in range(self.shards):
            owner = self._owners.get(shard) or self._take_over(shard)
            try:
                self._step(shard, owner)
            except StepAborted:
                del self._owners[shard]  # its memory is ahead of its rows

    def drain(self) -> None:
        """Serve what is left. A tenant that is paused is not, and so nobody is in the end."""
        for _ in range(_DRAINED_WITHIN):
            views = [owner.stepper.core.snapshot().shard for owner in self._owners.values()]
            idle = not self._due and not any(view.queued_runs or view.flight_runs for view in views)
            if idle and len(views) == self.shards and not any(map(self._unread, range(self.shards))):
                return
            self.tick()
        raise AssertionError("it does not drain")

    def _unread(self, shard: int) -> bool:
        owner = self._owners[shard]
        return any(self._next[each.value, shard] > owner.read[each] for each in Source)

    def _take_over(self, shard: int) -> _Owner:
        stepper = load_from(self._writers[shard], shard, self.shards)()  # type: ignore[arg-type] # it has what is used
        applied = stepper.positions.applied
        redelivered = self.random.randint(0, 2)
        read = {each: max(0, applied.get(each.value, -1) + 1 - redelivered) for each in Source}
        owner = self._owners[shard] = _Owner(stepper, read)
        return owner

    def _step(self, shard: int, owner: _Owner) -> None:
        stepper = owner.stepper
        batches = list(self._batches(shard, owner))
        changes = [each for each in self._stated if each.offset > stepper.core.policy_version]
        due = stepper.core.next_timer_ms() or NEVER
        if batches or changes or not stepper.arrived or due <= self.now_ms:
            stepper.step(batches, changes, max(self.now_ms, stepper.core.now_ms))

    def _batches(self, shard: int, owner: _Owner) -> Iterator[Batch]:
        for source in Source:
            records = list(self.recording.read(source.value, shard, owner.read[source]))
            if self.random.random() < 0.2:
                continue  # it comes later
            owner.read[source] = self._next[source.value, shard]
            if records:
                yield Batch(source, [*map(_consumed, records)], takeover=1)


_SHARDED: Final = ("requests", "completions", "dispatch", "rejected", "journal", "state")


def _consumed(given: Rec) -> Rec:
    """As the scheduler's consumer hands it on."""
    return given if given.readable else given._replace(headers=mark(HEADERS, "a name is not UTF-8"))
