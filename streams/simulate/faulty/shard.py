"""What the simulation needs of a shard and of what steps it. The real ones are in `streams.app`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streams.core.shard import Shard
from streams.intake import Forward, InputBatch
from streams.rows import PositionsRecord
from streams.wire import AppliedPolicy


class Records(Protocol):
    """Everything that one step writes, encoded: (key, value) pairs but for the forwards."""

    @property
    def positions(self) -> tuple[bytes, bytes]: ...
    @property
    def rows(self) -> Sequence[tuple[bytes, bytes | None]]: ...
    @property
    def dispatches(self) -> Sequence[tuple[bytes, bytes]]: ...
    @property
    def rejections(self) -> Sequence[tuple[bytes | None, bytes]]: ...
    @property
    def forwards(self) -> Sequence[Forward]: ...
    @property
    def journal(self) -> tuple[bytes, bytes] | None: ...


class Writer(Protocol):
    """Writes a step: all of it or nothing."""

    def fence(self) -> None:
        """Become the only writer of the shard."""

    def write(self, records: Records) -> None:
        """Raises `StepAborted`, `OwnershipLost` or `Unavailable`, as the real one does."""

    def give_up(self) -> None:
        """Nothing blocks here."""


class Stepper(Protocol):
    """A shard that is loaded."""

    @property
    def positions(self) -> PositionsRecord: ...
    @property
    def arrived(self) -> bool:
        """Whether a step of this reign has been committed."""

    def step(self, batches: Sequence[InputBatch], policies: Sequence[AppliedPolicy], now_ms: int) -> None:
        """Advance and commit. Raises what the writer raises."""

    def confirm(self) -> None:
        """Commit the positions as they are."""


class Load(Protocol):
    """Makes a living shard of its rows, as a new owner does."""

    def __call__(self, rows: Mapping[bytes, bytes], shard: int, shards: int, writer: Writer) -> tuple[Shard, Stepper]:
        """Raises `StateUnreadable` for rows that are not what was written."""
