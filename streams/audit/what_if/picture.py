"""The comparison as a picture: each tenant's p95 wait and its share, as it happened, in the model, and what if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.errors import visible
from streams.pictures import INK, MUTED, label, look, new_figure, save, style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streams.audit.what_if.comparison import Side, WhatIf

_SHOWN: Final = 28  # tenants, those with most tokens: more would not be read
_SHORTEST_S: Final = 0.01  # what is shorter is drawn there: the axis has no zero
_SIDES: Final = (("happened", "o"), ("model of what was", "s"), ("what if", "D"))  # with their markers


def draw(found: WhatIf, path: Path) -> None:
    """Write the picture as SVG. Raises `NotInstalled` without matplotlib, `ConfigError` if it cannot be written."""
    with style():
        figure = _figure(found)
    save(figure, path)


def _figure(found: WhatIf) -> Figure:
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415 - only whoever draws needs the extra

    tokens = found.happened.tokens
    chosen = sorted(tokens, key=lambda tenant: -tokens[tenant])[:_SHOWN]
    figure = new_figure(9, 1.9 + 0.27 * len(chosen))
    title = f"what if: {visible(found.change.title)}"
    if len(chosen) < len(tokens):
        title += f"   ({len(chosen)} of {len(tokens)} tenants, those with most tokens)"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    waits, shares = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    waits.set_title("p95 wait")
    waits.set_xlabel(f"seconds, from the request to its start ({_SHORTEST_S:g} and less at the edge)")
    waits.set_xscale("log")
    waits.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    waits.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))  # plain, and only within one decade
    _dots(waits, found, chosen, _p95_s)
    shares.set_title("share")
    shares.set_xlabel(_shares_of(found))
    _dots(shares, found, chosen, _percent)
    _stated(shares, found.other, chosen)
    waits.set_yticks(range(len(chosen)), [label(tenant) for tenant in chosen])
    waits.invert_yaxis()
    figure.legend(*shares.get_legend_handles_labels(), loc="outside lower left", ncols=4)
    return figure


def _dots(axes: Axes, found: WhatIf, tenants: Sequence[str], value: Callable[[Side, str], float | None]) -> None:
    """Draw a row of dots for each tenant, and a line from what the model says of then to what it says of the change."""
    sides = (found.happened, found.model, found.other)
    for row, tenant in enumerate(tenants):
        then, now = value(found.model, tenant), value(found.other, tenant)
        if then is not None and now is not None:
            axes.plot((then, now), (row, row), color=MUTED, linewidth=1, zorder=1)
    for number, (side, (name, marker)) in enumerate(zip(sides, _SIDES, strict=True)):
        points = [(x, row) for row, tenant in enumerate(tenants) if (x := value(side, tenant)) is not None]
        axes.scatter(
            [x for x, _ in points],
            [row for _, row in points],
            s=26,
            marker=marker,
            facecolors=look(number).colour if side is not found.model else "none",
            edgecolors=look(number).colour,
            label=name,
            zorder=2,
        )


def _stated(axes: Axes, side: Side, tenants: Sequence[str]) -> None:
    total = sum(share.observed for share in side.shares.values())
    if side.divided and total:
        rows = [row for row, tenant in enumerate(tenants) if tenant in side.shares]
        stated = [100 * side.shares[tenants[row]].stated / total for row in rows]
        axes.scatter(stated, rows, s=110, marker="|", color=INK, label="stated, what if", zorder=1)


def _p95_s(side: Side, tenant: str) -> float | None:
    waits = side.waits.get(tenant)
    return None if waits is None else max(waits.p95 / 1_000, _SHORTEST_S)


def _percent(side: Side, tenant: str) -> float | None:
    total = sum(share.observed for share in side.shares.values())
    share = side.shares.get(tenant)
    return 100 * share.observed / total if share and total else None


def _shares_of(found: WhatIf) -> str:
    if found.contest is None:
        return "no two tenants were ever backlogged together"
    interval = found.contest.interval
    return f"% of the tokens from {interval.from_ms / 1_000:.1f} s to {interval.until_ms / 1_000:.1f} s"
