"""How far a long phase of a benchmark has come: on standard error, so that results can be piped away."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streams import clock
from streams.local.progress import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PLAIN_EVERY_S: Final = 10.0  # a line this often where nobody watches a bar


@contextmanager
def counting_to(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` there are; the caller says so with what it is given, as often as it knows."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain(total, what)
        return
    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _plain(total: int, what: str) -> Callable[[int], None]:
    due = clock.monotonic() + _PLAIN_EVERY_S

    def show(done: int) -> None:
        nonlocal due
        if clock.monotonic() >= due:
            due += _PLAIN_EVERY_S
            say(f"  {what}: {done:,} of {total:,}")

    return show
