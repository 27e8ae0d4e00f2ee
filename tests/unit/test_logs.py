"""Log lines: one an event, whatever stands in it."""

from __future__ import annotations

import logging

import pytest

from streams.errors import FairstreamError
from streams.logs import OneLine

NASTY = "acme\x1b[2J\r\n2026-01-01 CRITICAL streams.app.failed: forged\u202e\0\u2028"


def format_record(message: str, *arguments: object, error: BaseException | None = None) -> str:
    trace = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("streams.app", logging.INFO, "file.py", 1, message, arguments, trace)
    return OneLine("%(levelname)s %(message)s").format(record)


def test_a_line_stays_one_line_and_commands_no_terminal() -> None:
    line = format_record("streams.app.policy_read name=%s", NASTY)
    assert line.isprintable()
    assert line.startswith(r"INFO streams.app.policy_read name=acme\x1b[2J\r\n2026-01-01 CRITICAL")


def test_a_traceback_cannot_pose_as_an_event() -> None:
    with pytest.raises(FairstreamError) as caught:
        raise FairstreamError(NASTY)
    head, *trace = format_record("streams.app.failed", error=caught.value).splitlines()
    assert head == "INFO streams.app.failed"
    assert any("forged" in line for line in trace)
    assert all(line.startswith("    ") and line.isprintable() for line in trace)


def test_plain_lines_are_left_alone() -> None:
    assert format_record("größe=%d %r", 7, "a") == "INFO größe=7 'a'"
