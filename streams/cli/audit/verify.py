"""`fairstream audit verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from streams.cli import options
from streams.cli.audit import source
from streams.cli.audit.bars import showing
from streams.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from streams.audit.verify import Report

_FILE_WIDTH: Final = 200


def verify(
    context: typer.Context,
    *,
    interval: Annotated[str, typer.Option(help="Compare shares over intervals of this length.")] = "1m",
    replay: Annotated[
        bool, typer.Option("--replay", help="Measure the gap in a replay too: for tenants with a cap or in a group.")
    ] = False,
    directory: source.From = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Check by arithmetic over the topics, without a scheduler: nothing missing, doubled, altered or out of order.

    The journal's chain and steps; each decision, sent once as it was decided; each refusal, and the limit it names;
    each attempt, settled once at what its worker reported; tokens charged = settled + in flight; the gap between
    backlogged tenants and its bound; what they got and their share by weight. Problems are shown with shard and step.

    What arithmetic cannot tell, `fairstream audit replay` does: it decides everything again.

    Exit status 1: something is wrong.
    """
    from streams.audit.verify import verify as check
    from streams.cli.moments import parse_duration

    length_ms = max(1, round(parse_duration(interval).total_seconds() * 1000))
    recording = source.recording(kafka, prefix, kafka_config, directory, context)
    spans = [recording.bounds("journal", shard) for shard in range(recording.shards)]
    total = sum(end - first for first, end in spans)
    with showing(lambda _what, _done, _of: None) as tell:
        report = check(
            recording, interval_ms=length_ms, replay=replay, progress=lambda steps: tell("verifying", steps, total)
        )
    if json:
        say_json(_document(report))
    else:
        _print(report)
    if report.found:
        raise typer.Exit(1)


def _document(report: Report) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "sound": not report.found,
        "found": report.found,
        "problems": [each._asdict() for each in report.problems],
        "steps": {str(shard): step for shard, step in report.steps.items()},
        "looked_at": report.looked_at,
        "shares": [_named(asdict(each)) for each in report.shares],
        "gaps": [{"shard": shard, **_named(pair._asdict())} for shard, pair in report.widest],
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in row.items()}


def _print(report: Report) -> None:
    from rich.console import Console

    from streams.cli.audit.verify_tables import figures, tables
    from streams.cli.tables import widen

    # Rich takes 80 columns for what is no terminal, and would cut the tables for the file or pipe they go to.
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    widen(console, figures(report), _FILE_WIDTH)
    console.print(tables(report))
    steps = f"{counted(report.looked_at.get('steps', 0), 'step')} of {counted(len(report.steps), 'shard')}"
    if report.found:
        say(f"{steps}: {counted(report.found, 'PROBLEM')}; the first ones of each kind are shown")
    else:
        say(f"{steps}: nothing is wrong")
