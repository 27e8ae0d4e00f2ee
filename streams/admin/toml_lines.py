"""Where in a TOML text something stands: parsers give values without lines, and people need lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int | None:
    """Return the line (from 1) where `path` stands, or what is nearest around it; None if nothing of it is there.

    `path` leads through tables by name and through arrays by index: ("classes", 1, "name"). A line inside a
    string or array of several lines may be taken for a key, so this is for messages only.
    """
    best, found = 0, None
    for number, there in _lines(text):
        common = _common(there, path)
        # The whole of what stands there must lie on the path: a sibling's line would mislead.
        if common > best and common == len(there):
            best, found = common, number
    return found


def _lines(text: str) -> Iterator[tuple[int, Path]]:
    """Yield each line that begins a table or sets a key, with its full path."""
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("[["):
            names = _names(stripped)
            index = counts[names] = counts.get(names, -1) + 1
            table = (*names, index)
            yield number, table
        elif stripped.startswith("["):
            table = _names(stripped)
            yield number, table
        elif "=" in stripped and not stripped.startswith("#"):
            key = _key(stripped)
            if key:
                yield number, (*table, *key)


def _key(line: str) -> Path:
    """Return the names before the equals sign that ends the key: a quoted name may have one in it, too."""
    at = line.find("=")
    while at >= 0:
        names = _names(line[:at] + "= 0")
        if names:
            return names
        at = line.find("=", at + 1)
    return ()


def _names(line: str) -> Path:
    """Let the parser itself read a header or key; () if it is none."""
    try:
        parsed: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(parsed, dict | list) and parsed:
        if isinstance(parsed, list):
            parsed = parsed[0]
        else:
            name, parsed = next(iter(parsed.items()))
            names.append(name)
    return tuple(names)


def _common(one: Path, other: Path) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
