"""Durations and moments as people type them: `90s`, `5m`; `2026-07-01T12:00:00Z`, `+5m` for in five minutes.

Where only the past can be meant, `5m` is five minutes ago.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def parse_duration(text: str) -> timedelta:
    """Return a duration above 0. Raises typer's `BadParameter`."""
    found = _DURATION.fullmatch(text)
    duration = float(found[1]) * _UNITS[found[2]] if found else timedelta()
    if duration <= timedelta():
        raise typer.BadParameter(f"{text!r} is no duration above 0; write 500ms, 90s, 5m, 2h or 1d")
    return duration


def parse_moment(text: str, now_ms: int) -> datetime:
    """Return a moment: an ISO 8601 one, or one so much after `now_ms`. Raises typer's `BadParameter`."""
    if text.startswith("+"):
        return datetime.fromtimestamp(now_ms / 1000, UTC) + parse_duration(text[1:])
    return _iso(text, "+5m")


def parse_past(text: str, now_ms: int) -> datetime:
    """Return a moment that has been: an ISO 8601 one, or one so long before `now_ms`. Raises typer's `BadParameter`."""
    if _DURATION.fullmatch(text):
        return datetime.fromtimestamp(now_ms / 1000, UTC) - parse_duration(text)
    return _iso(text, "5m for five minutes ago")


def _iso(text: str, otherwise: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no moment; write 2026-07-01T12:00:00Z, or {otherwise}") from error
    if moment.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone; end it with Z or +02:00")
    return moment
