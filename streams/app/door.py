"""What the runtime needs of the core: the door of `streams.core.shard`. A benchmark puts another core behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from streams.core.effects import Effects
from streams.core.inputs import Input
from streams.core.records import Record
from streams.core.snapshot import ShardSnapshot


class Core(Protocol):
    """A shard in memory. See `streams.core.shard.Shard`."""

    def step(self, inputs: Iterable[Input], now_ms: int) -> Effects: ...
    def next_timer_ms(self) -> int | None: ...
    def snapshot(self) -> ShardSnapshot: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def policy_version(self) -> int: ...


class CoreType(Protocol):
    """Makes shards: new ones, and from rows."""

    def __call__(self, shard: int, shards: int) -> Core: ...
    def load(self, shard: int, shards: int, records: Iterable[Record]) -> Core: ...
