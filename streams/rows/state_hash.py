"""A shard's state in 128 bits, kept up to date at the cost of the rows that change.

The sum, modulo 2**128, of BLAKE2b-128 of each row's key and value. A sum does not depend on the order of the rows, so
it is the same for whoever has them: the owner that wrote them one by one, the next one that loads them, who replays.
The rows are those of the core, in the newest form of each kind (`canonical`); what the runtime or a migration keeps in
the same topic (`RuntimeRow`) has no part in it.

It proves that two states are equal, to whoever worked out one of them. It is no signature: who can write the topics can
also write a hash that fits.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES: Final = 16
_MODULUS: Final = 1 << (8 * _BYTES)


class StateHash:
    """The hash of the rows put so far. Holds the hash of each, some 200 bytes with its key: it is to be taken off."""

    __slots__ = ("_rows", "_sum")

    def __init__(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._sum = 0  # == sum of the rows' hashes, not reduced

    @classmethod
    def of(cls, rows: Iterable[tuple[bytes, bytes]]) -> StateHash:
        """Return the hash of these rows: keys as in the state topic (`encode_key`), values in their newest form."""
        made = cls()
        made.apply(rows)
        return made

    @property
    def value(self) -> str:
        """32 hexadecimal digits. Of no rows: zeros."""
        return f"{self._sum % _MODULUS:0{2 * _BYTES}x}"

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._rows)

    def put(self, key: bytes, value: bytes) -> None:
        """Add a row, or replace it."""
        self.apply(((key, value),))

    def apply(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take over what a step has changed; None: the row is gone, or was never written."""
        # On the path of every run: in one loop, without a call for each row, this takes a quarter less.
        known, total, from_bytes = self._rows, self._sum, int.from_bytes
        for key, value in rows:
            if value is None:
                total -= known.pop(key, 0)
            else:
                # A key is a JSON array, so no other key and value run together into the same bytes.
                new = from_bytes(blake2b(key + value, digest_size=_BYTES).digest(), "big")
                old = known.get(key)
                if old is None:
                    known[key] = new
                    total += new
                else:
                    known[key] = new
                    total += new - old
        self._sum = total
