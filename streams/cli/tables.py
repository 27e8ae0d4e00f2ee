"""How the tables of the commands look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(title: str, left: str, *right: str) -> Table:
    """Return a table without lines: one column of words, then columns of numbers. More can be added."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(left)
    for name in right:
        table.add_column(name, justify="right")
    return table
