"""What a shard's memory holds for a run that waits and for a tenant that is idle, counted by Python's allocator."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.bench.door import Door, DoorCase, rows_of_idle
from streams.core.policy import Memory, Policy
from streams.core.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Callable

_PAYLOAD: Final = 100  # bytes, not counted
_TENANTS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes in the core alone: what the runtime keeps of the rows is not in it."""

    queued_run: int  # beside its payload
    idle_tenant: int  # with one flow and the cost history of one workflow


def footprint(number: int) -> Footprint:
    """Measure over so many queued runs, and so many idle tenants."""
    return Footprint(
        queued_run=_bytes_held(lambda: _queued(number)) // number - _PAYLOAD,
        idle_tenant=_bytes_held(lambda: _idle(number)) // number,
    )


def _queued(number: int) -> Callable[[], object]:
    door = Door(DoorCase(tenants=_TENANTS))

    def queue() -> object:
        door.queue(number, _PAYLOAD)
        return door

    return queue


def _idle(number: int) -> Callable[[], object]:
    policy = Policy(memory=Memory(flows=number, histories=number))
    return lambda: Shard.load(0, 1, rows_of_idle(number, policy, history=True))


def _bytes_held(prepare: Callable[[], Callable[[], object]]) -> int:
    """Return how much more is allocated once what is prepared has been done, while its result is held."""
    act = prepare()
    gc.collect()
    tracemalloc.start()
    try:
        held = act()
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del held
    return allocated
