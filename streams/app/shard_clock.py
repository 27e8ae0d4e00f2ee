"""The time that a shard's steps carry: the wall clock's, but one that neither goes back nor stands still.

A wall clock that is set back by an hour would otherwise stop all timers of the shard (leases, backoffs, deadlines) for
that hour. From the highest time seen on it goes at least as fast as the monotonic clock, until the wall clock is ahead
again. The deadlines of requests, which others have stated by their clocks, come early by as much meanwhile.
"""

from __future__ import annotations

from typing import Final

from streams import clock

_MS: Final = 1_000


class ShardClock:
    """For the shard's own thread."""

    def __init__(self, not_before_ms: int) -> None:
        """`not_before_ms` is the time of the shard's last step, which may be another machine's."""
        self._base_ms = not_before_ms
        self._since_s = clock.monotonic()

    def now_ms(self) -> int:
        """Return the time in milliseconds since the epoch, never less than the last time."""
        now_ms, now_s = clock.now_ms(), clock.monotonic()
        at_least_ms = self._base_ms + int((now_s - self._since_s) * _MS)
        if now_ms >= at_least_ms:
            self._base_ms, self._since_s = now_ms, now_s
            return now_ms
        return at_least_ms
