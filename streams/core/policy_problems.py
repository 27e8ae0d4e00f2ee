"""What is wrong with a policy document, in words. Used by `streams.core.policy_check`.

A document holds whatever a person or a broken program wrote, and a problem is told on terminals, in logs and on the
rejected topic. So whatever stands in it is shown on one line, in printable characters, and up to a bound: names as
TOML writes them, values as Python does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

Path = tuple[str | int, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SHOWN: Final = 60  # characters of a name, or of a value
_LISTED: Final = 20  # names that are known, unless they are long
_LISTED_CHARS: Final = 200
_TOLD: Final = 20  # problems
# Names that a wrong one is compared with, and characters of it: a comparison takes up to half a millisecond.
_COMPARED: Final = 200
_COMPARED_CHARS: Final = 60


class Problem(NamedTuple):
    """One thing that is wrong with a document. `path` leads to it: ("tenants", "acme", "weight")."""

    path: Path
    value: object
    message: str

    @property
    def where(self) -> str:
        """The path as TOML would write it, on one line; long names are cut."""
        text = ""
        for part in self.path:
            if isinstance(part, int):
                text += f"[{part}]"
            else:
                text += "." * bool(text) + _key(part)
        return text

    def __str__(self) -> str:
        return f"{self.where}: {self.message} (got {_value(self.value)})"


class PolicyInvalid(ValueError):
    """The policy document has problems, all of which are in `problems`; nothing was changed."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        told = [str(problem) for problem in self.problems[:_TOLD]]
        if len(self.problems) > _TOLD:
            told.append(f"and {len(self.problems) - _TOLD} more")
        return "\n".join(told)


def quoted(name: str) -> str:
    """Return a name as TOML writes a basic string: on one line, in printable characters.

    A name longer than 60 characters, so written, is cut; no escape is cut in two. A lone surrogate, which TOML cannot
    have, is written as an escape like any other.
    """
    text = ""
    for character in name:
        written = _written(character)
        if len(text) + len(written) > _SHOWN:
            return f'"{text}…"'
        text += written
    return f'"{text}"'


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to add to "no such ...": the known name that is meant, or which are known; empty if none is.

    Only the first 200 are looked at.
    """
    names = list(islice(known, _COMPARED))
    close = get_close_matches(name[:_COMPARED_CHARS], names, n=1)
    if close:
        return f"; did you mean {quoted(close[0])}?"
    return f"; known: {_list(names)}" if names else ""


def _key(name: str) -> str:
    """Return a name as TOML writes a key: bare if it can be."""
    return name if len(name) <= _SHOWN and _BARE.fullmatch(name) else quoted(name)


def _list(names: list[str]) -> str:
    shown: list[str] = []
    room = _LISTED_CHARS
    for name in names:
        text = _key(name)
        room -= len(text)
        if room < 0 or len(shown) == _LISTED:
            return ", ".join([*shown, "…"])
        shown.append(text)
    return ", ".join(shown)


def _written(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    code = f"{ord(character):04X}"
    return f"\\u{code}" if len(code) == 4 else f"\\U{code:0>8}"  # noqa: PLR2004 - TOML's two lengths


def _value(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end; an integer of more digits than Python prints
        return f"a value of type {type(value).__name__} that is too large to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
