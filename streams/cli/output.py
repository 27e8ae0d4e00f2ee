"""Results on standard output, remarks on standard error."""

from __future__ import annotations

import sys
from typing import Any


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def remark(text: str) -> None:
    """Tell the person in front of it something that is no part of the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def counted(number: int, noun: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def say_json(value: Any, *, indent: bool = True) -> None:
    """Print a result as JSON. Dataclasses and named tuples become objects."""
    import orjson

    option = orjson.OPT_INDENT_2 if indent else 0
    sys.stdout.write(orjson.dumps(value, default=_plain, option=option).decode() + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    """What orjson does not know: named tuples come here as subclasses of tuple."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    return str(value)
