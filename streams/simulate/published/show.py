"""The figures for people: a table of at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from streams.simulate.published.figures import ELSEWHERE, Row

_NOTE = """\
Difference: tokens a second (output priced twice input) by which tenants get less or more in a minute than they ask \
for in it, each no more than the best served gets beyond it, summed over all; largest and mean of 19 minutes. \
Nearby: lowest to highest in nine pools whose server is up to a tenth faster or slower; what differs by less than \
that does not differ. Published: on a real engine; here: in a model of it, whose one fitted number, the time that the \
server adds to a step, is such that FIFO takes as long as it did there. Nothing is fitted to any difference."""


def show(rows: Iterable[Row], console: Console) -> None:
    """Print the figures as published and as they come out here, and below them those of other pools."""
    rows = [*rows]
    console.print("27 tenants at one engine: largest / mean difference\n", style="bold")
    console.print(_main(rows))
    console.print()
    console.print(_elsewhere(rows))
    console.print()
    console.print(_NOTE, style="dim")


def _main(rows: Sequence[Row]) -> Table:
    table = _table("scheduler", "published", "here", "nearby, largest", "nearby, mean", "took")
    for row in rows:
        published = "-" if row.published is None else _pair(*row.published)
        largest, mean = ([each[index] for each in row.nearby] for index in (0, 1))
        ranges = (f"{min(values):.0f} to {max(values):.0f}" for values in (largest, mean))
        table.add_row(row.scheduler, published, _pair(*row.here[:2]), *ranges, f"{row.here.took_s:.0f} s")
    return table


def _elsewhere(rows: Sequence[Row]) -> Table:
    table = _table("in other pools", *ELSEWHERE)
    for row in rows:
        table.add_row(row.scheduler, *(_pair(*row.elsewhere[name][:2]) for name in ELSEWHERE))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _pair(largest: float, mean: float) -> str:
    return f"{largest:.0f} / {mean:.0f}"
