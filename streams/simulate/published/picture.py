"""The differences over the ten minutes as a picture: FIFO, the virtual token counter, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from streams import pictures
from streams.simulate.published.difference import MOMENTS_US
from streams.simulate.published.figures import Row

DRAWN: Final = ("FIFO", "virtual token counter", "ours, 28 runs in flight")
_MINUTE_US: Final = 60_000_000


def draw(rows: Sequence[Row], path: Path) -> None:
    """Save the picture as SVG: the same bytes for the same figures. Raises as `streams.pictures.save`.

    The band around a line is what the pools nearby have given.
    """
    minutes = [moment / _MINUTE_US for moment in MOMENTS_US]
    drawn = [row for row in rows if row.scheduler in DRAWN]
    with pictures.style():
        figure = pictures.new_figure(8.2, 4.2)
        axes = figure.add_subplot()
        for row, number in zip(drawn, (1, 2, 0), strict=False):
            look, around = pictures.look(number), [*zip(*(each.moments for each in row.nearby), strict=True)]
            label = f"{row.scheduler}: mean {row.here.mean:.0f}"
            if row.published is not None:
                label += f" (published: {row.published.mean:.0f})"
            axes.fill_between(minutes, [*map(min, around)], [*map(max, around)], color=look.colour, alpha=0.15, lw=0)
            axes.plot(minutes, row.here.moments, color=look.colour, linestyle=look.dash, label=label)
        axes.set_title("27 tenants at one engine: what they get less or more than they ask for, tokens/s")
        axes.set_xlabel("minutes")
        axes.set_xlim(minutes[0], minutes[-1])
        axes.set_ylim(0)
        axes.legend(loc="upper left")
        pictures.save(figure, path)
