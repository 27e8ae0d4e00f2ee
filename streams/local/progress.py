"""Progress on standard error: a bar on a terminal, plain lines elsewhere (CI logs, files)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_PLAIN_LINES: Final = 4  # lines between start and end when nobody watches a bar


def say(line: str) -> None:
    """Tell what is being done; at once, also into a file."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextmanager
def counting(title: str, total: int, *, unit: str) -> Iterator[Callable[[], None]]:
    """Show how many of `total` are done; the caller calls what it is given once for each."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(f"fetching {title}", total=total)
            yield lambda: bar.advance(task)
    else:
        say(f"fetching {title}: {total} {unit}, only this once")
        yield _plain(title, total, unit)


def _plain(title: str, total: int, unit: str) -> Callable[[], None]:
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done * _PLAIN_LINES // total > (done - 1) * _PLAIN_LINES // total:
            say(f"fetching {title}: {done} of {total} {unit}")

    return advance
