"""The explanation as a picture: over one time axis what the run waited for, how its tenant stood, who was served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

from streams import pictures
from streams.audit.explain import parts
from streams.audit.explain.story import tell
from streams.core import run_view, waiting
from streams.errors import ConfigError, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streams.audit.explain.curve import Slices
    from streams.audit.explain.explanation import Explanation
    from streams.audit.explain.life import Life

_WIDTH: Final = 9.0  # inches, as is the height
_HEIGHT: Final = 9.5
_RATIOS: Final = (1.0, 1.0, 1.2, 1.6, 0.9)
_TITLE_WIDTH: Final = 110  # characters
_BARS: Final = 64
_TENANTS: Final = 5  # that have a band of their own
_REST: Final = "others"

_RUNNING: Final = "running"

# Parts that are drawn as one: what a person would call the same cause.
_CAUSES: Final = {
    "own tenant's runs": (run_view.OWN,),
    "others' turns": (waiting.TURN, waiting.CLASS),
    "window full": (waiting.WINDOW_RUNS, waiting.WINDOW_TOKENS, waiting.VISIT),
    "own caps, paused": (waiting.CAP_RUNS, waiting.CAP_TOKENS, waiting.PAUSED),
    "its time, a pause": (waiting.DELAYED, parts.BACKOFF, run_view.OVERDUE),
    "no scheduler": (parts.OUTAGE,),
    "on its way": (parts.INTAKE, parts.HANDOVER, parts.UNHEARD),
    _RUNNING: parts.WORK,
}
_CAUSE_LOOKS: Final = {cause: pictures.look(number) for number, cause in enumerate(_CAUSES)} | {
    _RUNNING: pictures.Look(pictures.GRID, "solid", "")  # the end of waiting, and no eighth colour
}
_CAUSE_OF: Final = {part: cause for cause, named in _CAUSES.items() for part in named}


def draw(explanation: Explanation, path: Path) -> None:
    """Draw a run that was accepted. Raises `ConfigError` for one that was not, or where it cannot be written."""
    life = explanation.life
    if life is None:
        raise ConfigError("the run was not accepted: there is nothing to draw", field="picture", value=str(path))
    with pictures.style():
        figure = _figure(explanation, life)
    pictures.save(figure, path)


def _figure(explanation: Explanation, life: Life) -> Figure:
    figure = pictures.new_figure(_WIDTH, _HEIGHT)
    figure.suptitle(fill(visible(tell(explanation)[0]), _TITLE_WIDTH), x=0.01, ha="left", fontsize=10)
    axes = figure.subplots(len(_RATIOS), sharex=True, height_ratios=_RATIOS)
    _causes(axes[0], life)
    _ahead(axes[1], life)
    _deficit(axes[2], life, explanation.tenant)
    _served(axes[3], life, explanation.tenant)
    _window(axes[4], life)
    for axis in axes:
        _moments(axis, life)
    axes[-1].set_xlabel("seconds after it came")
    axes[-1].set_xlim(0, max(_after(life, _end_ms(life)), 0.001))
    return figure


# --- the five of them


def _causes(axis: Axes, life: Life) -> None:
    axis.set_title("what it waited for")
    axis.set_ylabel("% of the time")
    bars: dict[str, Counter[int]] = {}
    for number, amounts in _coarse(life.phases, life):
        for part, ms in amounts.items():
            bars.setdefault(_CAUSE_OF[part], Counter())[number] += ms
    whole: Counter[int] = Counter()
    for by_number in bars.values():
        whole.update(by_number)
    names = [cause for cause in _CAUSES if cause in bars]
    shares = {name: {number: 100 * ms / whole[number] for number, ms in bars[name].items()} for name in names}
    _stack(axis, life, shares, _CAUSE_LOOKS)
    axis.set_ylim(0, 100)


def _ahead(axis: Axes, life: Life) -> None:
    axis.set_title("runs of its own tenant and class before it")
    axis.set_ylabel("runs")
    points = life.curve.points
    times = [_after(life, point.at_ms) for point in points]
    axis.step(times, [point.ahead_runs for point in points], where="post", color=pictures.look(0).colour)
    axis.set_ylim(bottom=0)


def _deficit(axis: Axes, life: Life, tenant: str) -> None:
    axis.set_title(f"what {pictures.label(tenant)} may spend (below 0: debt)")
    axis.set_ylabel("tokens")
    points = life.curve.points
    times = [_after(life, point.at_ms) for point in points]
    axis.axhline(0, color=pictures.MUTED, linewidth=0.8)
    axis.step(times, [point.deficit for point in points], where="post", color=pictures.look(0).colour)


def _served(axis: Axes, life: Life, tenant: str) -> None:
    axis.set_title("who was served while it waited")
    axis.set_ylabel("tokens a second")
    totals: Counter[str] = Counter()
    for _, amounts in life.meanwhile.slices:
        totals.update(amounts)
    others = sorted((name for name in totals if name != tenant), key=lambda name: (-totals[name], name))
    named = [tenant, *others[:_TENANTS]]
    bars: dict[str, Counter[int]] = {}
    for number, amounts in _coarse(life.meanwhile.slices, life):
        for name, tokens in amounts.items():
            bars.setdefault(name if name in named else _REST, Counter())[number] += tokens
    seconds = _bar_ms(life) / 1000
    order = [*named, _REST]
    rates = {
        name: {number: tokens / seconds for number, tokens in bars[name].items()} for name in order if name in bars
    }
    _stack(axis, life, rates, {name: pictures.look(number) for number, name in enumerate(order)})


def _window(axis: Axes, life: Life) -> None:
    axis.set_title("runs in flight")
    axis.set_ylabel("runs")
    points = life.curve.points
    times = [_after(life, point.at_ms) for point in points]
    for number, (name, runs) in enumerate(
        (
            ("the shard's", [point.shard_flight_runs for point in points]),
            ("its tenant's", [point.flight_runs for point in points]),
        )
    ):
        look = pictures.look(number)
        axis.step(times, runs, where="post", color=look.colour, linestyle=look.dash, label=name)
    if life.window_runs is not None:
        axis.axhline(life.window_runs, color=pictures.MUTED, linewidth=0.8, label="the window")
    axis.set_ylim(bottom=0)
    _legend(axis)


# --- what they are made of


def _stack(axis: Axes, life: Life, values: dict[str, dict[int, float]], looks: Mapping[str, pictures.Look]) -> None:
    """Draw bars, one upon the other."""
    width = _bar_ms(life) / 1000
    below: Counter[int] = Counter()
    for name, heights in values.items():
        look = looks[name]
        numbers = sorted(heights)
        axis.bar(
            [number * width for number in numbers],
            [heights[number] for number in numbers],
            width=width,
            bottom=[below[number] for number in numbers],
            align="edge",
            color=look.colour,
            hatch=look.hatch,
            edgecolor="white",
            linewidth=0,
            label=pictures.label(name),
        )
        below.update(heights)
    if values:
        _legend(axis)


def _legend(axis: Axes) -> None:
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _moments(axis: Axes, life: Life) -> None:
    """Mark when it was dispatched, and when it ended."""
    for attempt in life.attempts:
        axis.axvline(_after(life, attempt.dispatched.at_ms), color=pictures.INK, linewidth=0.8, linestyle="dashed")
    if life.ended is not None:
        axis.axvline(_after(life, life.ended.at_ms), color=pictures.INK, linewidth=0.8)


def _coarse(slices: Slices, life: Life) -> list[tuple[int, dict[str, int]]]:
    """Return (number of a bar, amounts) of all slices: the bars are as wide as the slices, or wider."""
    width = _bar_ms(life)
    return [((at_ms - life.arrived_ms) // width, amounts) for at_ms, amounts in slices]


def _bar_ms(life: Life) -> int:
    """Return how long a bar is: a multiple of both kinds of slices, since each of them is a power of two."""
    width = max(life.phases.width_ms, life.meanwhile.slices.width_ms)
    while (_end_ms(life) - life.arrived_ms) > _BARS * width:
        width *= 2
    return width


def _after(life: Life, at_ms: int) -> float:
    return (at_ms - life.arrived_ms) / 1000


def _end_ms(life: Life) -> int:
    return life.ended.at_ms if life.ended is not None else life.seen_ms
