"""`fairstream audit replay`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli import options
from streams.cli.audit import source
from streams.cli.output import counted, remark, say, say_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streams.audit.recording import Recording
    from streams.audit.replay.deployment import ShardOutcome, Tell


def replay(
    context: typer.Context,
    *,
    shard: Annotated[list[int] | None, typer.Option("--shard", min=0, help="Only this one; may be repeated.")] = None,
    since: source.Since = None,
    until: source.Until = None,
    from_checkpoint: Annotated[
        bool,
        typer.Option(
            "--from-checkpoint",
            help="Begin with a checkpoint: the first one after which no input has been deleted, or that of --since.",
        ),
    ] = False,
    start: Annotated[
        Path | None,
        typer.Option("--start", metavar="DIR", help="Begin with what `fairstream audit checkpoint --to` wrote there."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Shards replayed at once, each in a process; without it one for each core."),
    ] = None,
    directory: source.From = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Prove every decision: the recorded inputs go through the same core again, and everything is compared.

    Step by step: decisions with estimate and deficit, revocations, settlements, refusals, counts, and the hash of the
    whole state. The first difference is shown with both sides. A replay begins with the first step, or with a
    checkpoint: with --since at the last one before that time, if there is one.

    Exit status 1: something differs, or is missing from the journal. 2: it cannot be replayed, or not all of it, since
    inputs or records of the journal have been deleted, or another version of the core has decided.
    """
    from streams import clock
    from streams.audit.replay import ReplayOptions, replay_shards

    recording = source.recording(kafka, prefix, kafka_config, directory, context)
    shards = _shards(recording, shard)
    since_ms, until_ms = source.span(since, until)
    chosen = ReplayOptions(since_ms=since_ms, until_ms=until_ms, from_checkpoint=from_checkpoint, kept=start)
    begun = clock.monotonic()
    with _showing(shards) as tell:
        outcomes = replay_shards(recording, shards, chosen, jobs=jobs or os.cpu_count() or 1, tell=tell)
    if json:
        say_json({"equal": all(each.equal for each in outcomes), "shards": [*map(_as_data, outcomes)]})
    else:
        _show(outcomes, clock.monotonic() - begun)
    if any(each.divergence is not None for each in outcomes):
        raise typer.Exit(1)
    if not all(each.equal for each in outcomes):
        raise typer.Exit(2)


def _shards(recording: Recording, asked: Sequence[int] | None) -> list[int]:
    from streams.errors import ConfigError

    for shard in asked or ():
        if shard >= recording.shards:
            raise ConfigError(f"there are {recording.shards}, from 0 on", field="shard", value=shard)
    return sorted(set(asked)) if asked else list(range(recording.shards))


def _as_data(outcome: ShardOutcome) -> dict[str, Any]:
    data = asdict(outcome)
    data["divergence"] = outcome.divergence and {**outcome.divergence._asdict(), "text": str(outcome.divergence)}
    return {"equal": outcome.equal, **data}


def _show(outcomes: Sequence[ShardOutcome], seconds: float) -> None:
    for each in outcomes:
        after = f" after the checkpoint of step {each.after:,}" if each.after else ""
        said = f"{counted(each.steps, 'step')}{after}, {counted(each.decisions, 'decision')}"
        equal = "EQUAL" if each.steps else "nothing to compare"
        say(f"shard {each.shard}: {said}: {equal if each.equal else _why(each)}")
        if not each.proved:
            say("  its checkpoint could not be held against the journal's record of its step; the next hash proves it")
    decisions = sum(each.decisions for each in outcomes)
    recorded = max(((each.last_ms or 0) - (each.first_ms or 0)) / 1000 for each in outcomes)
    rate = decisions / max(seconds, 0.001)
    say(f"{counted(decisions, 'decision')} of {recorded:,.1f} s replayed in {seconds:,.1f} s ({rate:,.0f} a second)")


def _why(outcome: ShardOutcome) -> str:
    if outcome.divergence is None:
        return f"NOT REPLAYED: {outcome.refused}"
    divergence = outcome.divergence
    from streams.errors import shown, visible

    lines = [f"DIFFERS in step {divergence.step:,} (journal offset {divergence.offset:,}): {visible(divergence.field)}"]
    if divergence.note:
        lines.append(f"  {visible(divergence.note)}")
    lines += [f"  recorded  {shown(divergence.recorded, 500)}", f"  replayed  {shown(divergence.replayed, 500)}"]
    return "\n".join(lines)


@contextmanager
def _showing(shards: Sequence[int]) -> Iterator[Tell]:
    """Show a bar for each shard, and the rate; or, where nobody watches, that it has begun."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        remark(f"replaying {counted(len(shards), 'shard')}…")
        yield lambda _outcome: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {shard: bars.add_task(f"shard {shard}", rate="", total=None) for shard in shards}

        def tell(outcome: ShardOutcome) -> None:
            rate = outcome.decisions / max(outcome.seconds, 0.001)
            total = outcome.offsets or None
            bars.update(tasks[outcome.shard], completed=outcome.read, total=total, rate=f"{rate:,.0f} decisions/s")

        yield tell
