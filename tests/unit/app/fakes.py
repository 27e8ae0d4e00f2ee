"""Stand-ins for what surrounds a shard: a writer that remembers, records as a consumer shapes them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streams.app.inbox import Batch, size_of
from streams.app.step import Stepper
from streams.app.transaction import StepRecords
from streams.core.records import Record
from streams.core.shard import Shard
from streams.intake import Reader, Source
from streams.rows import POSITIONS, PositionsRecord, RuntimeRow, StateHash, canonical, decode, decode_key
from streams.wire import encode_completion, encode_request, partition_for, topic_names

NAMES = topic_names("runs.")


@dataclass(frozen=True)
class FakeRecord:
    """A consumed record."""

    offset: int
    value: bytes | None
    key: bytes | None = b"key"
    timestamp: int = 1_000
    headers: tuple[tuple[str, bytes], ...] = ()


def request(offset: int, tenant: str = "acme", run_id: str | None = None) -> FakeRecord:
    value = encode_request(tenant=tenant, run_id=run_id or f"run-{offset}", workflow="w", payload=offset)
    return FakeRecord(offset, value, tenant.encode())


def completion(offset: int, run_id: str, tenant: str = "acme", tokens: int = 5) -> FakeRecord:
    value = encode_completion(tenant=tenant, run_id=run_id, attempt=1, status="succeeded", tokens=tokens)
    return FakeRecord(offset, value, tenant.encode())


def requests(*records: FakeRecord, takeover: int = 1, event: object = None) -> Batch:
    return Batch(Source.REQUESTS, list(records), takeover, event, sum(map(size_of, records)))


def completions(*records: FakeRecord, takeover: int = 1, event: object = None) -> Batch:
    return Batch(Source.COMPLETIONS, list(records), takeover, event, sum(map(size_of, records)))


def tenant_of(shard: int, shards: int) -> str:
    """A tenant that belongs to a shard."""
    return next(name for name in map(str, range(1_000)) if partition_for(name, shards) == shard)


@dataclass
class FakeWriter:
    """Keeps what was written, as the topics would; fails when told to."""

    written: list[StepRecords] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)  # raised by the next writes, in order
    fences: int = 0
    given_up: bool = False
    gate: threading.Event | None = None  # a write waits for it
    entered: threading.Event = field(default_factory=threading.Event)  # a write waits at the gate

    def fence(self) -> None:
        self.fences += 1

    def write(self, records: StepRecords) -> None:
        if self.gate is not None:
            self.entered.set()
            self.gate.wait(10)
        if self.failures:
            raise self.failures.pop(0)
        self.written.append(records)

    def give_up(self) -> None:
        self.given_up = True
        if self.gate is not None:
            self.gate.set()

    @property
    def rows(self) -> dict[bytes, bytes]:
        """The state topic, compacted."""
        rows: dict[bytes, bytes] = {}
        for step in self.written:
            for key, value in [*step.rows, step.positions]:
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
        return rows


def load_from(writer: FakeWriter, shard: int = 0, shards: int = 1) -> Callable[[], Stepper]:
    """What `StateTopic.load` and the assembly do, from a fake writer's rows."""

    def load() -> Stepper:
        positions = PositionsRecord(epoch=0, applied={}, partitions={"requests": shards, "completions": shards})
        records: list[Record] = []
        state = StateHash()
        for key_bytes, value in writer.rows.items():
            _, key = decode_key(key_bytes)
            row = decode(key, value)
            if key == (POSITIONS,):
                assert isinstance(row, PositionsRecord)
                positions = row
            else:
                assert not isinstance(row, RuntimeRow)
                records.append(row)
                state.put(key_bytes, canonical(row, value))
        core = Shard.load(shard, shards, records) if records else Shard(shard, shards)
        reign = replace(positions, epoch=positions.epoch + 1)
        return Stepper(core, reign, writer, Reader(NAMES, shard, shards), shard=shard, state=state)

    return load
