"""What the journal costs a step: bytes and time of each run, and its share of the step.

To the journal belong its record, the digest that chains it to the next one, and the hash of the state. They are
measured inside whole steps (`steps`), small ones as under low load and large ones as under high load: once of what the
step's thread computes, without Kafka; and of the time that a step takes, its commit included, with one.
"""

from __future__ import annotations

import gc
import platform
import tracemalloc
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import orjson
import typer

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.topics import Layout, ensure
from streams.app.collector import quiet
from streams.bench.bare import WORKFLOW
from streams.bench.core import is_compiled
from streams.bench.kafka import some_kafka
from streams.bench.steps import Committer, Steps
from streams.core.policy import DEFAULT_CLASS
from streams.core.records import RunRecord
from streams.kafka import KafkaSettings
from streams.rows import StateHash, encode, encode_key, row_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.bench.steps import Spent

RUNS_A_STEP: Final = (1, 16, 256, 1_000)
_MICROS: Final = 1_000_000
_MOST_COMMITS: Final = 200  # a round: one takes some ms
_ROWS: Final = 50_000  # of queued runs whose hashes are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """What to measure, and for how long."""

    runs: int = 5_000  # of each size of a step, a round
    rounds: int = 5
    tenants: int = 200
    kafka: str | None = None  # host:port; None: a local one, for as long as it takes
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCost:
    """Of steps of one size: the medians over the rounds, for each run."""

    runs_a_step: int
    step_us: float  # all that a step computes
    state_us: float  # of it, to hash the rows that change
    record_us: float  # of it, to encode the journal's record, and its digest
    share: float  # of both in what a step computes
    committed_us: float  # that a step takes with its commit, by the clock
    committed_share: float  # of both in that
    journal_bytes: int
    other_bytes: int  # of rows and dispatches


def run_journal(options: JournalOptions) -> int:
    """Measure, print; return the exit code (0, whatever the figures are)."""
    with some_kafka(options.kafka) as servers:
        costs, held = measure_journal(options, servers), hash_bytes(_ROWS)
    if options.json:
        about = {"options": asdict(options), "python": platform.python_version(), "compiled": is_compiled()}
        typer.echo(orjson.dumps({**about, "steps": list(map(asdict, costs)), "hash_bytes_a_run": held}).decode())
    else:
        _show(costs, held)
    return 0


def measure_journal(options: JournalOptions, servers: str) -> list[JournalCost]:
    """Take steps of each size in turn, round after round, without Kafka and with it."""
    with quiet():
        computed = {runs: Steps(options.tenants, runs) for runs in RUNS_A_STEP}
        committed = {runs: Steps(options.tenants, runs, _committer(servers, runs)) for runs in RUNS_A_STEP}
    for steps in committed.values():
        steps.take(1)  # a cold client and a cold broker take several times as long
    rounds = [
        {
            runs: (computed[runs].take(options.runs), committed[runs].take(min(options.runs, _MOST_COMMITS * runs)))
            for runs in RUNS_A_STEP
        }
        for _ in range(options.rounds)
    ]
    return [_cost(runs, [each[runs] for each in rounds]) for runs in RUNS_A_STEP]


def _committer(servers: str, runs: int) -> Committer:
    kafka = KafkaSettings(servers=servers, prefix=f"bench-journal-{runs}-{clock.now_ms()}.")
    ensure(admin_client(kafka), Layout(shards=1, prefix=kafka.prefix))
    return Committer(kafka)


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


def _cost(runs_a_step: int, rounds: list[tuple[Spent, Spent]]) -> JournalCost:
    computed, committed = ([each[index] for each in rounds] for index in (0, 1))
    first = computed[0]
    return JournalCost(
        runs_a_step=runs_a_step,
        step_us=median(_MICROS * each.whole_s / each.runs for each in computed),
        state_us=median(_MICROS * each.state_s / each.runs for each in computed),
        record_us=median(_MICROS * each.record_s / each.runs for each in computed),
        share=median((each.state_s + each.record_s) / each.whole_s for each in computed),
        committed_us=median(_MICROS * each.passed_s / each.runs for each in committed),
        committed_share=median((each.state_s + each.record_s) / each.passed_s for each in committed),
        journal_bytes=round(first.journal_bytes / first.runs),
        other_bytes=round(first.other_bytes / first.runs),
    )


def _show(costs: list[JournalCost], held: int) -> None:
    typer.echo(f"Python {platform.python_version()}, the core is {'compiled' if is_compiled() else 'not compiled'}")
    typer.echo("        microseconds a run                      share of both in     bytes a run")
    typer.echo("runs a   step     step with   state's            what is   the step,   of the       of")
    typer.echo("step     computes its commit     hash   record   computed  committed   journal     all")
    for each in costs:
        of_all = each.journal_bytes / (each.journal_bytes + each.other_bytes)
        typer.echo(
            f"{each.runs_a_step:>6,} {each.step_us:>10.1f} {each.committed_us:>10.1f} {each.state_us:>8.2f} "
            f"{each.record_us:>8.2f} {each.share:>10.1%} {each.committed_share:>10.1%} {each.journal_bytes:>9,} "
            f"{of_all:>7.0%}"
        )
    typer.echo(f"memory: {held:,} bytes a queued run for the state's hash")
