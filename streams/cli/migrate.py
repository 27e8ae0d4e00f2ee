"""`fairstream migrate shards`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from streams.cli import options
from streams.cli.output import counted, remark, say, say_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from streams.admin.migration.migrate import Migration, Outcome

app = typer.Typer(help="Move a deployment.", no_args_is_help=True)

_EVERY_S: Final = 1.0  # from one sweep to the next, when following

_WORDS: Final = {
    "read": "reading the present state",
    "mark": "marking the new shards",
    "move": "stopping the present shards",
    "fill": "writing rows",
    "sweep": "copying unread inputs",
    "prove": "proving",
    "save": "writing checkpoints",
    "open": "opening",
}

_AFTERWARDS: Final = (
    "Start schedulers, then workers, then switch producers (and gates) to --prefix {to}. What they have sent to the "
    "old topics since is copied by running this again, or as it comes with --follow."
)


@app.command()
def shards(
    number: Annotated[int, typer.Argument(min=1, help="How many shards there shall be.")],
    *,
    to: Annotated[str, typer.Option("--to", metavar="TEXT", help="What the new topics' names begin with.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on copying what comes into the old topics, until Ctrl-C.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come of it, and do nothing.")] = False,
    group: Annotated[
        str, typer.Option(metavar="TEXT", help="Group of the present schedulers, if they were told one.")
    ] = "",
    to_group: Annotated[
        str, typer.Option(metavar="TEXT", help="Group of the new schedulers, if they will be told one.")
    ] = "",
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Change the number of shards: move everything to new topics, under another prefix.

    Schedulers of the present topics are stopped: those that run lose their shards, those that start are told where to
    go (exit status 2). Queued and delayed runs, attempts in flight with what is left of their leases, debts, accounts,
    histories and the ids of ended runs move, and then what stands unread in the present topics. The new deployment is
    opened only once it is proved equal; until then its schedulers wait.

    It can be killed at any moment and run again. All rows of the present state are held in memory: some 3 KB and 0.1 ms
    of processor time for each queued run of a small payload (200,000: 0.5 GB, 20 s).

    Dispatches that no worker has taken yet stay in the old topic: workers of the old prefix take and report them as
    before, and these reports are copied; what nobody takes comes back when its lease has run out.
    """
    from streams.admin.migration.migrate import Migration

    old, new = (options.kafka_settings(kafka, each, kafka_config) for each in (prefix, to))
    with _showing() as progress:
        migration = Migration(old, new, number, group=group, new_group=to_group, progress=progress)
        outcome = migration.look() if dry_run else migration.run()
        if follow and outcome.opened:
            _follow(migration, outcome)
    if json:
        say_json({"equal": outcome.equal, **_as_data(outcome)})
    else:
        _show(outcome)
    if not outcome.equal:
        raise typer.Exit(1)


def _follow(migration: Migration, outcome: Outcome) -> None:
    from streams import clock

    remark(f"open; copying what comes into {migration.old.kafka.prefix}* until Ctrl-C")
    try:
        while True:
            migration.sweep(outcome)
            clock.pause(_EVERY_S)
    except KeyboardInterrupt:
        migration.prove_inputs(outcome)


def _as_data(outcome: Outcome) -> dict[str, Any]:
    from dataclasses import asdict

    lines = [{**line._asdict(), "equal": line.equal} for line in outcome.lines]
    return {**asdict(outcome), "lines": lines}


def _show(outcome: Outcome) -> None:
    verb = "would move" if outcome.dry_run else "has moved" if outcome.opened else "has not moved"
    say(
        f"{outcome.prefix}* ({counted(outcome.shards, 'shard')}) {verb} to {outcome.to}* "
        f"({counted(outcome.to_shards, 'shard')})"
    )
    say(f"  {'':<28}{'before':>16}{'after':>16}")
    for line in outcome.lines:
        say(
            f"  {line.what:<28}{line.before:>16,}{line.after:>16,}  {'equal' if line.equal else _wrong(line.differing)}"
        )
    if outcome.runs:
        say(f"runs of each new shard: {', '.join(f'{runs:,}' for runs in outcome.runs)}")
    if outcome.copied:
        say(f"copied {counted(outcome.copied, 'unread input')}")
    if outcome.expired:
        say(f"{outcome.expired:,} offsets of the old inputs were deleted by retention before anybody read them")
    for each in outcome.remarks:
        say(f"note: {each}")
    if outcome.opened:
        say(_AFTERWARDS.format(to=outcome.to))


def _wrong(names: tuple[tuple[str, ...], ...]) -> str:
    return f"DIFFERENT: {'; '.join('/'.join(name) for name in names) or 'their number'}"


def _showing() -> AbstractContextManager[Callable[[str, int, int | None], None]]:
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    @contextmanager
    def showing() -> Iterator[Callable[[str, int, int | None], None]]:
        console = Console(stderr=True)
        if not console.is_terminal:
            yield _Plain()
            return
        columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task("")

            def show(step: str, done: int, of: int | None) -> None:
                bars.update(task, description=_WORDS[step], completed=done, total=of)

            yield show

    return showing()


class _Plain:
    """A line for each step, where nobody watches a bar."""

    def __init__(self) -> None:
        self._step = ""

    def __call__(self, step: str, _done: int, of: int | None) -> None:
        if step != self._step:
            self._step = step
            remark(_WORDS[step] + (f": {of:,}" if of else "") + "…")
