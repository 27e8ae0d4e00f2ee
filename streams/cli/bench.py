"""`fairstream bench e2e | core | journal | takeover | replay`."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli import options

Tenants = Annotated[int, typer.Option(min=1, help="Tenants that file the runs.")]
Kafka = Annotated[
    str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Without it a local one, while it lasts.")
]

app = typer.Typer(help="Measure the speed on this machine.", no_args_is_help=True)


@app.command()
def e2e(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Runs to put through.")] = 60_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that both loops are measured, in turn.")] = 3,
    shards: Annotated[int, typer.Option(min=1, help="Shards, all in one process.")] = 4,
    tenants: Tenants = 200,
    window: Annotated[int, typer.Option(min=1, help="Runs in flight; a small one measures the round trip.")] = 4_000,
    kafka: Kafka = None,
    json: options.Json = False,
) -> None:
    """Whole runs a second, from request to settled, beside the same loop without scheduling."""
    from streams.bench.e2e import E2eOptions, run_e2e

    settings = E2eOptions(
        runs=runs, rounds=rounds, shards=shards, tenants=tenants, window=window, kafka=kafka, json=json
    )
    raise typer.Exit(run_e2e(settings))


@app.command()
def core(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Runs a case and round.")] = 50_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every case is measured, in turn.")] = 5,
    tenants: Annotated[int, typer.Option(min=1, help="Tenants with work, in the case that has many.")] = 100_000,
    idle: Annotated[
        int, typer.Option(min=1, help="Known tenants without work, in the case that has them.")
    ] = 1_000_000,
    profile: Annotated[bool, typer.Option("--profile", help="Where the time goes, instead of the rates.")] = False,
    json: options.Json = False,
) -> None:
    """Decisions a second of the core by itself, and what they do not depend on."""
    from streams.bench.core import CoreOptions, run_core

    settings = CoreOptions(runs=runs, rounds=rounds, tenants=tenants, idle=idle, profile=profile, json=json)
    raise typer.Exit(run_core(settings))


@app.command()
def journal(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Runs that go through steps of each size, a round.")] = 5_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every size is measured, in turn.")] = 5,
    tenants: Tenants = 200,
    kafka: Kafka = None,
    json: options.Json = False,
) -> None:
    """Bytes and time of the journal for each run, and its share of a step: of what it computes, and with its commit."""
    from streams.bench.journal import JournalOptions, run_journal

    raise typer.Exit(run_journal(JournalOptions(runs=runs, rounds=rounds, tenants=tenants, kafka=kafka, json=json)))


@app.command()
def takeover(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Queued runs.")] = 1_000_000,
    shards: Annotated[int, typer.Option(min=1, help="Shards, all taken over by one process.")] = 4,
    tenants: Tenants = 200,
    kafka: Kafka = None,
    json: options.Json = False,
) -> None:
    """Seconds until a deployment full of queued runs is served again, and the memory that they take."""
    from streams.bench.takeover import TakeoverOptions, run_takeover

    settings = TakeoverOptions(runs=runs, shards=shards, tenants=tenants, kafka=kafka, json=json)
    raise typer.Exit(run_takeover(settings))


@app.command()
def replay(
    *,
    runs: Annotated[int, typer.Option(min=1, help="Runs to put through, and to replay.")] = 120_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that they are recorded and replayed.")] = 3,
    shards: Annotated[int, typer.Option(min=1, help="Shards, all in one process while they are recorded.")] = 4,
    tenants: Tenants = 200,
    window: Annotated[int, typer.Option(min=1, help="Runs in flight.")] = 4_000,
    jobs: Annotated[int | None, typer.Option(min=1, help="Shards replayed at once; without it one a core.")] = None,
    kafka: Kafka = None,
    json: options.Json = False,
) -> None:
    """How many times faster a replay is than what it replays, recorded at full rate; and an export."""
    from streams.bench.replay import ReplayBenchOptions, run_replay

    more = {} if jobs is None else {"jobs": jobs}
    settings = ReplayBenchOptions(
        runs=runs, rounds=rounds, shards=shards, tenants=tenants, window=window, kafka=kafka, json=json, **more
    )
    raise typer.Exit(run_replay(settings))
