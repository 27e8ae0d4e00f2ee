"""What can be seen while a story is played: on standard error, so that results can be piped away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streams.demo.player import Moment
from streams.local.progress import say
from streams.simulate.story import Story

_PLAIN_EVERY_S: Final = 10.0  # a line this often where nobody watches a bar
_SHOWN: Final = 2  # tenants named in the line of the queues


class Watch(Protocol):
    """Takes in how far a story has come."""

    def __call__(self, moment: Moment) -> None: ...


@contextmanager
def watching(story: Story) -> Iterator[Watch]:
    """Show a story's progress while the block lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Plain(story)
        return
    columns = (
        TextColumn("{task.description:<7}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        total = len(story.arrivals)
        filed = progress.add_task("filed", total=total, note="")
        settled = progress.add_task("settled", total=total, note="")

        def show(moment: Moment) -> None:
            progress.update(filed, completed=moment.filed)
            progress.update(settled, completed=moment.settled, note=_queues(moment))

        yield show


class _Plain:
    """A line now and then."""

    def __init__(self, story: Story) -> None:
        self._total = len(story.arrivals)
        self._next_s = _PLAIN_EVERY_S

    def __call__(self, moment: Moment) -> None:
        if moment.elapsed_s >= self._next_s:
            self._next_s += _PLAIN_EVERY_S
            say(
                f"  {moment.elapsed_s:3.0f} s: {moment.filed} of {self._total} runs filed, {moment.settled} settled; "
                f"{_queues(moment)}"
            )


def _queues(moment: Moment) -> str:
    """Name who has most queued."""
    if not moment.queued:
        return "nothing queued"
    by_length = sorted(moment.queued.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{tenant} {runs}" for tenant, runs in by_length[:_SHOWN]]
    others = sum(runs for _, runs in by_length[_SHOWN:])
    return "queued: " + ", ".join([*named, *([f"all others {others}"] if len(by_length) > _SHOWN else [])])
