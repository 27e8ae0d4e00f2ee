"""A process's side of one shard: it reads the inputs, steps, and does what the real one does when a step fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streams.core.shard import Shard
from streams.intake import Source
from streams.simulate.faulty.chances import HELD_BACK, REDELIVERED, SET_BACK
from streams.simulate.faulty.log import Log, Record
from streams.simulate.faulty.scene import Scene
from streams.simulate.faulty.shard import Load, Stepper, Writer
from streams.wire import AppliedPolicy, decode_policy

_REDELIVERED: Final = 4  # records at most
_MOST: Final = 12  # records of one topic a step


@dataclass(frozen=True)
class Batch:
    """Records of one input, as `streams.intake` reads them."""

    source: Source
    records: Sequence[Record]


def rows_of(log: Log, shard: int) -> dict[bytes, bytes]:
    """Return what is committed of a shard's state: the last value of each key."""
    rows: dict[bytes, bytes] = {}
    records, _ = log.read(("state", shard), 0)
    for each in records:
        assert each.key is not None, "a row has a key"
        if each.value is None:
            rows.pop(each.key, None)
        else:
            rows[each.key] = each.value
    return rows


class Owner:
    """One reign over one shard."""

    def __init__(self, scene: Scene, shard: int, writer: Writer, load: Load, *, skew_ms: int) -> None:
        """Take the shard over: fence, load, and go on where the rows say, or a little before.

        `skew_ms`: how far the process's clock is ahead of the world's.
        """
        self.shard: Final = shard
        self._log: Final = scene.log
        self._chances: Final = scene.chances
        self._shards: Final = scene.shards
        self._writer: Final = writer
        self._load: Final = load
        self._skew_ms: Final = skew_ms
        self._next: dict[Source, int] = {}
        writer.fence()
        self.core, self.stepper = self._loaded()

    def reload(self) -> None:
        """Begin again from the rows: a step was not written, and memory is ahead of them."""
        self.core, self.stepper = self._loaded()

    def step(self) -> bool:
        """Take a step if there is a reason; tell whether there was. Raises what the writer raises."""
        core, now_ms = self.core, self._log.now_ms + self._skew_ms
        policies = [*self._policies(core.policy_version)]
        batches = [] if policies else [*self._batches()]
        due = core.next_timer_ms()
        if not (batches or policies or not self.stepper.arrived or (due is not None and due <= now_ms)):
            return False
        if now_ms < core.now_ms:
            self._chances.fired[SET_BACK] += 1
        self.stepper.step(batches, policies, max(now_ms, core.now_ms))
        return True

    def _loaded(self) -> tuple[Shard, Stepper]:
        core, stepper = self._load(rows_of(self._log, self.shard), self.shard, self._shards, self._writer)
        for source in Source:
            start = stepper.positions.applied.get(source.value, -1) + 1
            if start and self._chances.fires(REDELIVERED):
                start -= self._chances.random.randint(1, min(_REDELIVERED, start))
            self._next[source] = start
        return core, stepper

    def _policies(self, version: int) -> Iterator[AppliedPolicy]:
        records, _ = self._log.read(("policy", 0), version + 1)
        for each in records:
            change = decode_policy(each.value)
            yield AppliedPolicy(each.offset, change.author, change.applied_ms, change.policy)

    def _batches(self) -> Iterator[Batch]:
        for source in Source:
            place = source.value, self.shard
            records, after = self._log.read(place, self._next[source], self._chances.random.randint(1, _MOST))
            if not records or self._chances.fires(HELD_BACK):
                continue
            self._next[source] = after
            yield Batch(source, records)
