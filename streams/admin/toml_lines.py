"""Where in a TOML text something stands: parsers give values without lines, and people need lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Final

Path = tuple[str | int, ...]

_ENDS: Final = ("]", '"""', "'''")  # a value of several lines ends in a line with one of these
_DEEPEST: Final = 8  # parts of a path inside one value: twice what a policy can have
_TRIES: Final = 100  # ends of one value; each is a parse of all of it, and no list in a policy is as long


class TomlLines:
    """The lines (from 1) of a text that is TOML. A value of several lines stands where it begins."""

    def __init__(self, text: str) -> None:
        self._first: dict[Path, int] = {}
        for number, path in _places(text):
            self._first.setdefault(path, number)

    def of(self, path: Path) -> int | None:
        """Return the line where `path` stands, or what is nearest around it; None if nothing of it is there.

        `path` leads through tables by name and through arrays by index: ("classes", 1, "name").
        """
        prefixes = (path[:length] for length in range(len(path), 0, -1))
        return next((self._first[prefix] for prefix in prefixes if prefix in self._first), None)


def _places(text: str) -> Iterator[tuple[int, Path]]:
    """Yield every table, key and item, each with its line and its whole path."""
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, statement, parsed in _statements(text):
        if statement.startswith("[["):
            names = _names(parsed)
            counts[names] = counts.get(names, -1) + 1
            table = (*names, counts[names])
            yield number, table
        elif statement.startswith("["):
            table = _names(parsed)
            yield number, table
        else:
            yield from ((number, (*table, *path)) for path in _paths(parsed))


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield each header and each key with its value: the line it begins in, its text, what the parser makes of it.

    Nothing more comes after a value that could end in more than `_TRIES` lines.
    """
    begun, tries, parts = 0, 0, []
    for number, line in enumerate(text.split("\n"), start=1):
        begun = begun or number
        parts.append(line)
        if len(parts) > 1 and not any(end in line for end in _ENDS):
            continue
        statement = "\n".join(parts).strip()
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:  # its value goes on in the next line
            tries += 1
            if tries > _TRIES:
                return
            continue
        if parsed:
            yield begun, statement, parsed
        begun, tries, parts = 0, 0, []


def _names(header: Any) -> Path:
    """Return the path of a header's table: names only, as the last array in it is counted by the caller."""
    names = []
    while header:
        if isinstance(header, list):
            header = header[0]
        else:
            name, header = next(iter(header.items()))
            names.append(name)
    return tuple(names)


def _paths(value: Any, deepest: int = _DEEPEST) -> Iterator[Path]:
    """Yield the path of everything inside a value down to so many levels, what is outside first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner if deepest else ():
        yield (key,)
        for path in _paths(item, deepest - 1):
            yield (key, *path)
