"""Where the time of the whole door goes, by room of the core and by function.

The profiler makes each call dearer than it is, so rooms of many small functions look a little worse than they are.
Built-in functions (heaps, dictionaries) count for who calls them.
"""

from __future__ import annotations

import cProfile
import pstats
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streams.core
from streams.bench.door import Door, DoorCase

if TYPE_CHECKING:
    from collections.abc import Callable

OUTSIDE: Final = "(making the requests and reports)"
_CORE: Final = Path(next(iter(streams.core.__path__)))
_TENANTS: Final = 10

_Function = tuple[str, int, str]  # file, line, name: what the profiler calls one


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one room or function took, of a whole run."""

    name: str
    share_ppm: int  # of the time of all
    calls: float  # a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The dearest first."""

    rooms: list[Spent]
    functions: list[Spent]


def profile(runs: int) -> Profile:
    """Put `runs` through the door under the profiler."""
    door = Door(DoorCase(tenants=_TENANTS))
    door.rate(runs)  # the histories have settled, and the caches are warm
    profiler = cProfile.Profile()
    profiler.runcall(door.rate, runs)
    spent, calls = _own_time(pstats.Stats(profiler))
    return Profile(rooms=_sorted(spent, calls, _room, runs), functions=_sorted(spent, calls, _function, runs))


def _own_time(stats: pstats.Stats) -> tuple[dict[_Function, float], dict[_Function, int]]:
    """Return seconds and calls of each Python function, with those of the built-in functions that it called."""
    spent: defaultdict[_Function, float] = defaultdict(float)
    calls: defaultdict[_Function, int] = defaultdict(int)
    measured: dict[_Function, tuple[int, int, float, float, dict[_Function, tuple[int, int, float, float]]]]
    measured = stats.stats  # type: ignore[attr-defined]  # missing in typeshed; pstats documents its layout in code only
    for function, (_, number, seconds, _, callers) in measured.items():
        if function[0] != "~":
            spent[function] += seconds
            calls[function] += number
            continue
        for caller, (_, number_of, seconds_of, _) in callers.items():
            spent[caller] += seconds_of
            calls[caller] += number_of
    return spent, calls


def _sorted(
    spent: dict[_Function, float], calls: dict[_Function, int], name_of: Callable[[_Function], str], runs: int
) -> list[Spent]:
    seconds: defaultdict[str, float] = defaultdict(float)
    number: defaultdict[str, int] = defaultdict(int)
    for function, each in spent.items():
        seconds[name_of(function)] += each
        number[name_of(function)] += calls[function]
    total = sum(seconds.values())
    return [
        Spent(name=name, share_ppm=round(seconds[name] / total * 1_000_000), calls=round(number[name] / runs, 2))
        for name in sorted(seconds, key=lambda name: (-seconds[name], name))
    ]


def _room(function: _Function) -> str:
    path = Path(function[0])
    return path.stem if path.parent == _CORE else OUTSIDE


def _function(function: _Function) -> str:
    path, _, name = function
    return f"{Path(path).stem}: {name}" if Path(path).parent == _CORE else OUTSIDE
