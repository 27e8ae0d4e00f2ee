"""Numbers as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def span(ms: int) -> str:
    """Return a duration in the unit that a person would name."""
    for size, unit in _UNITS:
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms} ms"


def moment(at_ms: int) -> str:
    """Return a time in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def counted(number: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(ppm: int | None) -> str:
    """Return parts per million as a percentage; None: "-"."""
    return "-" if ppm is None else f"{ppm / 10_000:.1f} %"


def listed(items: list[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
