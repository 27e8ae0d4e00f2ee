"""The commands that AUDIT.md shows, run, and what they print. `python -m tests.audit_page` writes it into the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from streams.cli.tree import app

PAGE: Final = Path(__file__).parent.parent / "AUDIT.md"

_BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT: Final = "$ "


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the page with the lines below it."""
    for block in _BLOCK.findall(page):
        for part in f"\n{block}".split(f"\n{_PROMPT}")[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield command, lines


def printed(command: str) -> list[str]:
    """Return what the command line prints, `| head -N` and `| tail -N` included."""
    first, *filters = (shlex.split(part) for part in command.split("|"))
    assert first[0] == "fairstream", command
    result = CliRunner().invoke(app, first[1:])
    assert result.exit_code == 0, f"{command}: {result.output}"
    lines = [line.rstrip() for line in result.stdout.rstrip("\n").split("\n")]
    for name, number in filters:
        count = int(number.removeprefix("-"))
        lines = lines[:count] if name == "head" else lines[-count:]
    return lines


def written(page: str) -> str:
    """Return the page with what the commands print now."""

    def block(found: re.Match[str]) -> str:
        commands = [command for command, _ in shown(found[0])]
        parts = ["\n".join([f"{_PROMPT}{command}", *printed(command)]) for command in commands]
        return "\n".join(["```console", *parts, "```"])

    return _BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
