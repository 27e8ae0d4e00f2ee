"""The core by itself: order alone, and the whole door, with ratios to a walking sweep and a plain queue."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import orjson
import typer

from streams.bench.door import DoorCase, door_rate
from streams.bench.order import best_of, fifo_rate, ring_rate, sweep_rate

FLOWS: Final = 5_000
_COST: Final = 900
_DEAR: Final = 50_000  # tokens: 50 quanta
_TIMES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreOptions:
    """What to measure, and for how long."""

    runs: int = 100_000
    tenants: int = 100_000  # with work, in the case that has many
    idle: int = 100_000  # known tenants without work, in the case that has them
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One figure and its ratio to the first of its table."""

    name: str
    per_s: int
    ratio: float


def run_core(options: CoreOptions) -> int:
    """Measure, print, and return the exit code (0, whatever the figures are)."""
    order, door = measure_order(options), measure_door(options)
    if options.json:
        tables = {"order": [asdict(rate) for rate in order], "door": [asdict(rate) for rate in door]}
        typer.echo(orjson.dumps({"options": asdict(options), **tables}).decode())
        return 0
    _show(f"order alone, {FLOWS:,} flows (runs queued and served per second)", order)
    _show("the whole door (request + dispatch + completion per second)", door)
    return 0


def measure_order(options: CoreOptions) -> list[Rate]:
    """The ring, the sweep that walks at cheap and dear runs, and a queue that is not fair."""
    runs = options.runs
    figures = {
        "ring": best_of(_TIMES, lambda: ring_rate(FLOWS, runs, _COST)),
        "ring, a run costs 50 quanta": best_of(_TIMES, lambda: ring_rate(FLOWS, runs, _DEAR)),
        "walking sweep": best_of(_TIMES, lambda: sweep_rate(FLOWS, runs, _COST)),
        "walking sweep, a run costs 50 quanta": best_of(_TIMES, lambda: sweep_rate(FLOWS, runs, _DEAR)),
        "one queue, first come first served": best_of(_TIMES, lambda: fifo_rate(runs, _COST)),
    }
    return _rates(figures)


def measure_door(options: CoreOptions) -> list[Rate]:
    """The door at few and many tenants, at dear runs, and with idle tenants."""
    cases = (
        DoorCase(tenants=10),
        DoorCase(tenants=1_000),
        DoorCase(tenants=options.tenants),
        DoorCase(tenants=1_000, cost_in_quanta=1_000_000),
        DoorCase(tenants=1_000, idle=options.idle),
    )
    return _rates({case.name: door_rate(case, options.runs) for case in cases})


def _rates(figures: dict[str, int]) -> list[Rate]:
    first = next(iter(figures.values()))
    return [Rate(name=name, per_s=per_s, ratio=per_s / first) for name, per_s in figures.items()]


def _show(title: str, rates: list[Rate]) -> None:
    typer.echo(title)
    for rate in rates:
        typer.echo(f"  {rate.name:<48} {rate.per_s:>12,} /s   {rate.ratio:>6.2f}")
