"""The window: how much this shard may have in flight, in runs and in tokens.

The policy states the window of the whole deployment. For now it is divided evenly: shard i of n gets the i-th
part, and at least 1, for a shard without a place would starve its tenants (so keep n at or below the window).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams.core import policy


def even_part(total: int | None, shard: int, shards: int) -> int | None:
    """Return shard's part of `total`; the parts sum to `total` if it is >= shards, and differ by at most 1."""
    if total is None:
        return None
    return max(1, total // shards + (1 if shard < total % shards else 0))


class Window:
    """Places and tokens in use. Estimates are held as charged at dispatch, until the attempt is settled."""

    __slots__ = ("max_runs", "max_tokens", "runs", "tokens")

    def __init__(self) -> None:
        """Begin empty and without limits."""
        self.max_runs: int | None = None
        self.max_tokens: int | None = None
        self.runs = 0  # == attempts in flight
        self.tokens = 0  # == sum of their estimates

    def resize(self, whole: policy.Window, shard: int, shards: int) -> None:
        """Take the shard's part of the policy's window. What is in flight stays, even above a smaller limit."""
        self.max_runs = even_part(whole.runs, shard, shards)
        self.max_tokens = even_part(whole.tokens, shard, shards)

    def has_place(self) -> bool:
        """Tell whether one more run may be in flight."""
        return self.max_runs is None or self.runs < self.max_runs

    def fits(self, tokens: int) -> bool:
        """Tell whether a run of `tokens` may start. A run bigger than the whole window goes alone."""
        return self.max_tokens is None or self.tokens + tokens <= self.max_tokens or self.runs == 0
