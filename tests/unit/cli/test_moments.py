from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import typer

from streams.cli.moments import parse_duration, parse_moment, parse_past

NOW_MS = 1_782_907_200_000
NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("90s", timedelta(seconds=90)),
        ("1.5m", timedelta(seconds=90)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
    ],
)
def test_a_duration(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "-5s", "0s", "5 s", "5w", "1e3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no duration above 0"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-01T12:00:00Z", NOW),
        ("2026-07-01T14:00:00+02:00", NOW),
        ("2026-07-01T12:00Z", NOW),
        ("+90s", NOW + timedelta(seconds=90)),
    ],
)
def test_a_moment(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW_MS) == expected


@pytest.mark.parametrize(
    ("text", "why"), [("soon", "no moment"), ("2026-07-01T12:00:00", "time zone"), ("+x", "duration")]
)
def test_what_is_no_moment(text: str, why: str) -> None:
    with pytest.raises(typer.BadParameter, match=why):
        parse_moment(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", NOW - timedelta(seconds=90)), ("2026-07-01T14:00:00+02:00", NOW)]
)
def test_a_moment_that_has_been(text: str, expected: datetime) -> None:
    assert parse_past(text, NOW_MS) == expected


@pytest.mark.parametrize(("text", "why"), [("+5m", "5m for five minutes ago"), ("0s", "no duration above 0")])
def test_what_is_no_moment_of_the_past(text: str, why: str) -> None:
    with pytest.raises(typer.BadParameter, match=why):
        parse_past(text, NOW_MS)
