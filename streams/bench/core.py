"""The core by itself: order alone, the whole door, and memory; with ratios to what is simpler, measured in turn."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import orjson
import typer

from streams.app.collector import quiet
from streams.bench.door import Door, DoorCase
from streams.bench.memory import footprint
from streams.bench.order import QUANTUM, fifo_rate, ring_rate, sweep_rate
from streams.bench.profiling import Profile, profile
from streams.bench.rounds import Figure, interleaved
from streams.core import ring
from streams.errors import ConfigError

FLOWS: Final = 5_000
_DEAR: Final = 50  # quanta a run: a sweep that walks visits each flow 50 times for it
_DEAREST: Final = 1_000_000
_MEASURED: Final = 50_000  # runs and tenants whose memory is counted
_FUNCTIONS: Final = 15  # of a profile that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreOptions:
    """What to measure, and for how long."""

    runs: int = 50_000  # of each case, a round
    rounds: int = 5
    tenants: int = 100_000  # with work, in the case that has many
    idle: int = 1_000_000  # known tenants without work, in the case that has them
    profile: bool = False  # where the time goes, instead of the rates
    json: bool = False


def run_core(options: CoreOptions) -> int:
    """Measure, print, and return the exit code (0, whatever the figures are).

    Raises:
        ConfigError: a profile is asked for and the core is compiled: then there is nothing that could be watched.
    """
    if options.profile:
        _tell_profile(options)
        return 0
    order, door = measure_order(options), measure_door(options)
    memory = footprint(min(_MEASURED, options.idle))
    if options.json:
        _tell_json(options, order=list(map(asdict, order)), door=list(map(asdict, door)), bytes=asdict(memory))
        return 0
    typer.echo(f"Python {platform.python_version()}, the core is {'compiled' if is_compiled() else 'not compiled'}")
    _show(f"order alone, {FLOWS:,} flows: runs queued and served", order)
    _show("the whole door: runs requested, dispatched and completed", door)
    typer.echo(f"memory: {memory.queued_run:,} bytes a queued run beside its payload")
    typer.echo(f"        {memory.idle_tenant:,} bytes an idle tenant, with the history of one workflow")
    return 0


def is_compiled() -> bool:
    """Tell whether the core that is measured is machine code (`make compiled`) or the Python that stands there."""
    return Path(ring.__file__).suffix != ".py"


def measure_order(options: CoreOptions) -> list[Figure]:
    """The ring at cheap and dear runs, a sweep that walks, and a queue that is not fair."""
    runs, dear = options.runs, _DEAR * QUANTUM
    measures = {
        "ring": partial(ring_rate, FLOWS, runs, QUANTUM),
        f"ring, a run costs {_DEAR} quanta": partial(ring_rate, FLOWS, runs, dear),
        f"ring, a run costs {_DEAREST:,} quanta": partial(ring_rate, FLOWS, runs, _DEAREST * QUANTUM),
        "walking sweep": partial(sweep_rate, FLOWS, runs, QUANTUM),
        f"walking sweep, a run costs {_DEAR} quanta": partial(sweep_rate, FLOWS, runs, dear),
        "one queue, first come first served": partial(fifo_rate, runs, QUANTUM),
    }
    return interleaved(measures, options.rounds)


def measure_door(options: CoreOptions) -> list[Figure]:
    """The door at few and many tenants, at dear runs, and with idle tenants."""
    cases = (
        DoorCase(tenants=10),
        DoorCase(tenants=1_000),
        DoorCase(tenants=options.tenants),
        DoorCase(tenants=10, cost_in_quanta=_DEAREST),
        DoorCase(tenants=10, idle=options.idle),
    )
    with quiet():  # as the scheduler does when it loads a shard; without it the cases would slow each other down
        doors = {case.name: Door(case) for case in cases}
    return interleaved({name: partial(door.rate, options.runs) for name, door in doors.items()}, options.rounds)


def _show(title: str, figures: list[Figure]) -> None:
    typer.echo(f"{title:<56} {'median':>10} {'least':>12} {'most':>12}  a second; ratio to the first")
    for each in figures:
        typer.echo(f"  {each.name:<52} {each.median:>12,} {each.least:>12,} {each.most:>12,}  {each.ratio:>6.2f}")


def _tell_profile(options: CoreOptions) -> None:
    if is_compiled():
        raise ConfigError("the core is compiled, and a profile can only be taken of the interpreted one")
    found = profile(options.runs)
    if options.json:
        _tell_json(options, profile=asdict(found))
        return
    _show_profile(found)


def _show_profile(found: Profile) -> None:
    for title, spent in (("room", found.rooms), ("function", found.functions[:_FUNCTIONS])):
        typer.echo(f"{title:<40} {'of the time':>12} {'calls a run':>12}")
        for each in spent:
            typer.echo(f"  {each.name:<38} {each.share_ppm / 10_000:>10.1f} % {each.calls:>12.2f}")


def _tell_json(options: CoreOptions, **tables: object) -> None:
    about = {"options": asdict(options), "python": platform.python_version(), "compiled": is_compiled()}
    typer.echo(orjson.dumps(about | tables).decode())
