"""The paper that pictures are drawn on: size, fonts, and how they become a file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streams.errors import ConfigError, NotInstalled, visible
from streams.pictures.palette import GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GROUND: Final = "#ffffff"
_NAME: Final = 24  # characters: names may be much longer, and would leave no room for what is drawn
_NOTHING: Final = "\u200b"  # takes no room

_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": _GROUND,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": _GROUND,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial", "sans-serif"],
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "savefig.facecolor": _GROUND,
    "svg.fonttype": "none",  # text stays text: it can be searched, and the file is small
    "svg.hashsalt": "fairstream",  # or the ids in the file would be drawn anew each time
    "text.color": INK,
    "text.parse_math": False,  # a name with two dollar signs in it is no formula, and need not be one that is right
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


def check(path: Path) -> None:
    """Find out, before a long work begins, whether its picture can be drawn and saved there.

    Raises `ConfigError` for a name that does not end in .svg or a folder that is not there, `NotInstalled` without
    matplotlib.
    """
    if path.suffix.lower() != ".svg":
        raise ConfigError("the name of a picture ends in .svg", field="picture", value=str(path))
    if not path.parent.is_dir():
        raise ConfigError("there is no such folder", field="picture", value=str(path.parent))
    _require()


def style() -> AbstractContextManager[None]:
    """Return the style of all pictures, as a context: what is drawn outside it looks otherwise.

    Raises `NotInstalled` without matplotlib.
    """
    _require()
    from matplotlib import rc_context  # noqa: PLC0415 - only whoever draws needs the extra

    return rc_context(_STYLE)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of that size in inches, which keeps its parts from overlapping. Call it inside `style`."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - see `style`

    return Figure(figsize=(width, height), layout="constrained")


def label(name: str) -> str:
    """Return a name that a stranger may have given as it is written beside what is drawn: short, without control signs.

    A legend would leave out what begins with an underscore, so that one begins with nothing.
    """
    shown = visible(name)
    shown = shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}…"
    return _NOTHING + shown if shown.startswith("_") else shown


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG, in place of what was there. Raises `ConfigError` if that cannot be."""
    with style():
        try:
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "fairstream"})
        except OSError as error:
            raise ConfigError(f"the picture cannot be written: {error}", field="picture", value=str(path)) from error


def _require() -> None:
    try:
        import matplotlib as mpl  # noqa: F401, PLC0415 - see `style`
    except ModuleNotFoundError as error:
        raise NotInstalled("pictures need matplotlib: pip install 'fairstream[pictures]'") from error
