"""Tables in narrow terminals: lines may break, figures may not lose their ends."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streams.cli.tables import plain_table, widen


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("name", ["acme", "n" * 255])
def test_no_figure_is_cut(width: int, name: str) -> None:
    figures = [f"{10**number:,}" for number in range(3, 12)]
    table = plain_table("a title", "tenant", *(f"figure {number}" for number in range(len(figures))))
    table.add_row(name, *figures)
    console = Console(file=io.StringIO(), width=width)
    widen(console, table, 160)
    assert width <= console.width <= max(width, 160)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "…" not in said
    assert all(figure in said.split() for figure in figures)
    assert said.count("n") >= name.count("n")
