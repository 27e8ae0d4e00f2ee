"""Makes a checkpoint's records from a state partition's, with one chunk of them in memory. Pure.

The hash of the state is not among what is written: it would take what is remembered of every key. A reader, who has to
hold the rows anyhow, works it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from streams.core.records import SHARD, ShardRecord
from streams.errors import ConfigError
from streams.rows import FILLING, MOVED, POSITIONS, decode, encode_key
from streams.rows.checkpoint import FORM, Digest, Foot, Head, Pair, encode_rows

CHUNK_BYTES: Final = 512 * 1024  # unless one row is larger


class Copy:
    """One checkpoint while it is taken: its head, its chunks, and once they are written its foot."""

    def __init__(
        self, checkpoint: str, shard: int, *, begun_ms: int, state_end: int, journal_end: int, filled: bool = False
    ) -> None:
        """`checkpoint` is an id that no other has. `filled`: the rows are all there, although a migration is filling.

        Where the state and the journal end is asked before the state is read, so it may be behind that.
        """
        self._id: Final = checkpoint
        self._shard: Final = shard
        self._begun_ms: Final = begun_ms
        self._ends: Final = (state_end, journal_end)
        self._filled: Final = filled
        self._digest: Final = Digest()
        self._chunks = 0
        self._rows = 0
        self._apart: Final[dict[bytes, bytes | None]] = dict.fromkeys(
            encode_key(shard, (kind,)) for kind in (POSITIONS, MOVED, FILLING)
        )
        self._shard_key: Final = encode_key(shard, (SHARD,))
        self._shard_row: bytes | None = None

    def head(self) -> Head:
        """Return what is written first."""
        return Head(FORM, self._id, self._shard, self._begun_ms)

    def chunks(self, pairs: Iterable[Pair]) -> Iterator[bytes]:
        """Yield the records that hold the rows of a state partition, given from its beginning to its end."""
        chunk: dict[bytes, bytes | None] = {}
        size = 0
        for key, value in pairs:
            if key in self._apart:
                self._apart[key] = value
                continue
            if key == self._shard_key:
                self._shard_row = value
            # In place of what stood there before: a few rows change in every step.
            size += len(value or b"") + (len(key) if key not in chunk else -len(chunk.pop(key) or b""))
            chunk[key] = value
            if size >= CHUNK_BYTES:
                yield self._close(chunk)
                chunk, size = {}, 0
        if chunk:
            yield self._close(chunk)

    def foot(self, head: int) -> Foot:
        """Return what makes it count, once all else is written; `head` is the offset of its head.

        Raises:
            ConfigError: a migration is filling the shard, so its rows are not all there.
            StateUnreadable: the row of the shard itself is not one.
        """
        positions, _, filling = self._apart.values()
        if filling is not None and not self._filled:
            raise ConfigError("is being filled by `fairstream migrate shards`: run that to its end", field="shard")
        own = ShardRecord(self._shard, 0) if self._shard_row is None else decode((SHARD,), self._shard_row)
        assert isinstance(own, ShardRecord), "a row of this kind"
        state_end, journal_end = self._ends
        return Foot(
            form=FORM,
            id=self._id,
            shard=self._shard,
            step=own.step,
            now_ms=own.now_ms,
            epoch=own.epoch,
            head=head,
            chunks=self._chunks,
            rows=self._rows,
            digest=self._digest.value,
            positions=None if positions is None else positions.decode(),
            state_end=state_end,
            journal_end=journal_end,
        )

    def _close(self, chunk: dict[bytes, bytes | None]) -> bytes:
        value = encode_rows(self._id, chunk.items())
        self._digest.add(value)
        self._chunks += 1
        self._rows += len(chunk)
        return value
