"""What a record brings beside its value: its key and its timestamp."""

from __future__ import annotations

from typing import Final

from streams.errors import BadRecord

# The last millisecond of the year 9999, beyond which Python and most tools have no dates.
MAX_TIME_MS: Final = 253_402_300_799_999


def check_key(key: bytes | None) -> None:
    """Raise `BadRecord` for a key that is no text. A missing key is fine: the value names the tenant."""
    if key is not None:
        try:
            key.decode()
        except UnicodeDecodeError:
            raise BadRecord("not UTF-8", field="key", value=key[:80]) from None


def record_time(timestamp_ms: int) -> int:
    """Return a record's timestamp, or 0 for one that cannot be a time in milliseconds (-1, nanoseconds)."""
    return timestamp_ms if 0 < timestamp_ms <= MAX_TIME_MS else 0
