"""What the journal costs a step: bytes and time of each run, and its share of all that a step computes.

To the journal belong its record, the digest that chains it to the next one, and the hash of the state. They are
measured inside whole steps (`steps`), small ones as under low load and large ones as under high load.
"""

from __future__ import annotations

import gc
import platform
import tracemalloc
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import orjson
import typer

from streams.app.collector import quiet
from streams.bench.bare import WORKFLOW
from streams.bench.core import is_compiled
from streams.bench.steps import Steps
from streams.core.policy import DEFAULT_CLASS
from streams.core.records import RunRecord
from streams.rows import StateHash, encode, encode_key, row_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.bench.steps import Spent

RUNS_A_STEP: Final = (1, 16, 256, 1_000)
_PPM: Final = 1_000_000
_ROWS: Final = 50_000  # of queued runs whose hashes are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """What to measure, and for how long."""

    runs: int = 5_000  # of each size of a step, a round
    rounds: int = 5
    tenants: int = 200
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCost:
    """Of steps of one size: the medians over the rounds, for each run."""

    runs_a_step: int
    step_us: float  # all that a step computes
    state_us: float  # of it, to hash the rows that change
    record_us: float  # of it, to encode the journal's record, and its digest
    share: float  # of both in the step
    journal_bytes: int
    other_bytes: int  # of rows and dispatches


def run_journal(options: JournalOptions) -> int:
    """Measure, print; return the exit code (0, whatever the figures are)."""
    costs, held = measure_journal(options), hash_bytes(_ROWS)
    if options.json:
        about = {"options": asdict(options), "python": platform.python_version(), "compiled": is_compiled()}
        typer.echo(orjson.dumps({**about, "steps": list(map(asdict, costs)), "hash_bytes_a_run": held}).decode())
    else:
        _show(costs, held)
    return 0


def measure_journal(options: JournalOptions) -> list[JournalCost]:
    """Take steps of each size in turn, round after round."""
    with quiet():
        shards = {runs: Steps(options.tenants, runs) for runs in RUNS_A_STEP}
    taken = [{runs: steps.take(options.runs) for runs, steps in shards.items()} for _ in range(options.rounds)]
    return [_cost(runs, [each[runs] for each in taken]) for runs in RUNS_A_STEP]


def hash_bytes(number: int) -> int:
    """Return what the hash keeps for a queued run, over so many of them."""
    state = StateHash()
    gc.collect()
    tracemalloc.start()
    try:
        state.apply(_rows(number))
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return allocated // number


def _rows(number: int) -> Iterator[tuple[bytes, bytes]]:
    for at in range(number):
        run = RunRecord(f"tenant-{at % 200}", f"run-{at}", WORKFLOW, DEFAULT_CLASS, at, 1, None, None, 3, 1, 0, 0, b"")
        yield encode_key(0, row_key(run)), encode(run)


def _cost(runs_a_step: int, rounds: list[Spent]) -> JournalCost:
    def middle(seconds: list[float]) -> float:
        return sorted(seconds)[len(seconds) // 2] * _PPM

    first = rounds[0]
    return JournalCost(
        runs_a_step=runs_a_step,
        step_us=middle([each.whole_s / each.runs for each in rounds]),
        state_us=middle([each.state_s / each.runs for each in rounds]),
        record_us=middle([each.record_s / each.runs for each in rounds]),
        share=middle([(each.state_s + each.record_s) / each.whole_s for each in rounds]) / _PPM,
        journal_bytes=round(first.journal_bytes / first.runs),
        other_bytes=round(first.other_bytes / first.runs),
    )


def _show(costs: list[JournalCost], held: int) -> None:
    typer.echo(f"Python {platform.python_version()}, the core is {'compiled' if is_compiled() else 'not compiled'}")
    typer.echo("runs a step   step, µs a run   state's hash   record   both of the step   bytes a run   (of all)")
    for each in costs:
        of_all = each.journal_bytes / (each.journal_bytes + each.other_bytes)
        typer.echo(
            f"{each.runs_a_step:>11,}   {each.step_us:>14.1f}   {each.state_us:>12.2f}   {each.record_us:>6.2f}"
            f"   {each.share:>16.1%}   {each.journal_bytes:>11,}   {of_all:>8.0%}"
        )
    typer.echo(f"memory: {held:,} bytes a queued run for the state's hash")
