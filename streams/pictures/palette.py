"""Colours that people with colour blindness tell apart, each with a dash of its own for whoever has no colour at all.

M. Okabe, K. Ito, "Color Universal Design", 2008; without its yellow, which is too pale for a line on a light ground.
"""

from __future__ import annotations

from typing import Final, NamedTuple

INK: Final = "#1f2328"  # text and axes
MUTED: Final = "#6e7781"  # what is only a reference
GRID: Final = "#d8dee4"

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_DASHES: Final = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
# Lines only: a pattern of dots takes some 100 KB in the file.
_HATCHES: Final = ("", "///", "|||", "xxx", "\\\\\\", "+++", "---")

Dash = str | tuple[int, tuple[float, ...]]


class Look(NamedTuple):
    """How one series is told from the others."""

    colour: str
    dash: Dash  # of a line
    hatch: str  # of a bar


def look(number: int) -> Look:
    """Return the look of the n-th series, from 0. The first 28 are all different."""
    return Look(
        _COLOURS[number % len(_COLOURS)],
        _DASHES[number % len(_DASHES)],
        _HATCHES[number % len(_HATCHES)],
    )
