"""How the tables of the commands look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


def plain_table(title: str, left: str, *right: str) -> Table:
    """Return a table without lines: one column of words, then columns of numbers. More can be added.

    Where there is no room, words go on in the next line: a figure that has lost its end would be another figure.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(left, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def widen(console: Console, what: RenderableType, most: int) -> None:
    """Make a console as wide as tables are, up to `most` columns: a terminal breaks lines, and cuts no figure."""
    from rich.measure import Measurement

    need = Measurement.get(console, console.options.update(max_width=most), what).maximum
    console.width = max(console.width, need)
