"""A comparison as a picture: how much of its fair amount each had at any time, FIFO above ours; and the waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

from streams import pictures
from streams.errors import visible
from streams.simulate.comparison import Comparison, Outcome
from streams.simulate.contestants import OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN: Final = 12  # tenants, those that ask for most; of more, lines could not be told apart
_ABOVE: Final = ("fifo", "no-restraint", "round-robin")  # what is drawn above ours: the first that was played
_TITLES: Final = {
    OURS: "fairstream (deficit round robin)",
    "fifo": "FIFO",
    "round-robin": "round robin by count",
    "no-restraint": "no restraint",
}
_MOST_PERCENT: Final = 200
_MINUTE_MS: Final = 60_000
_LINE: Final = 100  # characters of the title


def draw(comparison: Comparison, path: Path) -> None:
    """Save the picture as SVG: the same bytes for the same comparison. Raises as `streams.pictures.save`."""
    with pictures.style():
        figure = pictures.new_figure(8.2, 7.2)
        drawn = _drawn(comparison)
        tenants = _most_asked(comparison)
        grid = figure.add_gridspec(len(drawn) + 1, 1, height_ratios=[*([1.0] * len(drawn)), 0.9])
        above: Axes | None = None
        for row, outcome in enumerate(drawn):
            above = figure.add_subplot(grid[row], sharex=above, sharey=above)
            _against_the_ideal(above, comparison, outcome, tenants)
        assert above is not None, "there is at least one scheduler"
        above.set_xlabel("minutes")
        figure.legend(*above.get_legend_handles_labels(), loc="outside right upper", title="tenant (weight)")
        _waits(figure.add_subplot(grid[-1]), comparison, drawn, tenants)
        title = fill(f"{visible(comparison.story.name)}: {comparison.story.title}", _LINE)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        pictures.save(figure, path)


def _drawn(comparison: Comparison) -> list[Outcome]:
    """Return what ours is shown below, and ours; without ours the first two that were played."""
    known = {outcome.scheduler: outcome for outcome in comparison.outcomes}
    if OURS not in known:
        return list(comparison.outcomes)[:2]
    return [*[known[name] for name in _ABOVE if name in known][:1], known[OURS]]


def _most_asked(comparison: Comparison) -> list[str]:
    asked = comparison.asked
    return sorted(asked, key=lambda tenant: (-asked[tenant], tenant))[:DRAWN]


def _thin(values: Sequence[int]) -> Sequence[int]:
    """Return every other value and the last: the file is half as large, and looks the same."""
    return values[::-2][::-1]


def _against_the_ideal(axes: Axes, comparison: Comparison, outcome: Outcome, tenants: list[str]) -> None:
    """Draw what had been worked off by each moment, in percent of what the ideal had: 100 is fair, for large and small.

    A tenant's line begins when the ideal has given it a quantum for its weight: before, whole runs stand against drops.
    """
    story = comparison.story
    moments = _thin(comparison.moments)
    for number, tenant in enumerate(tenants):
        look = pictures.look(number)
        points = [
            (at_ms * story.compression / _MINUTE_MS, 100 * worked / ideal)
            for at_ms, worked, ideal in zip(
                moments, _thin(outcome.worked[tenant]), _thin(comparison.ideal[tenant]), strict=True
            )
            if ideal >= story.policy.quantum * comparison.weights[tenant]
        ]
        axes.plot(
            [minute for minute, _ in points],
            [percent for _, percent in points],
            color=look.colour,
            linestyle=look.dash,
            label=f"{pictures.label(tenant)} ({comparison.weights[tenant]})",
        )
    axes.axhline(100, color=pictures.MUTED, linewidth=3, alpha=0.35, zorder=1)
    axes.set_title(f"{_TITLES[outcome.scheduler]}: tokens served, % of each tenant's fair amount")
    axes.set_xlim(0, moments[-1] * story.compression / _MINUTE_MS)
    axes.set_ylim(0, _MOST_PERCENT)


def _waits(axes: Axes, comparison: Comparison, drawn: list[Outcome], tenants: list[str]) -> None:
    """Draw the 95th percentile of the waits of each tenant under each scheduler, side by side."""
    width = 0.8 / len(drawn)
    for number, outcome in enumerate(drawn):
        places = [index + (number + 0.5) * width - 0.4 for index in range(len(tenants))]
        heights = [
            outcome.waits[tenant].p95 * comparison.story.compression / 1_000 if tenant in outcome.waits else 0.0
            for tenant in tenants
        ]
        look = pictures.look(1 - number)
        axes.bar(
            places,
            [max(height, 0.1) for height in heights],
            width,
            color=look.colour if number else "white",
            edgecolor=look.colour,
            hatch="" if number else "////",
            label=_TITLES[outcome.scheduler],
        )
    axes.set_yscale("log", subs=(2, 5))
    for formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatter(lambda seconds, _: f"{seconds:,.10g}")
    axes.set_title("p95 wait, seconds (log)")
    axes.set_xticks(range(len(tenants)), [pictures.label(tenant) for tenant in tenants], rotation=25, ha="right")
    axes.grid(visible=False, axis="x")
    axes.margins(x=0.01)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
