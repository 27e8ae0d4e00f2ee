"""`fairstream audit explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streams.cli import options
from streams.cli.audit import source
from streams.cli.audit.bars import showing
from streams.cli.output import remark, say_json

if TYPE_CHECKING:
    from streams.audit.explain import Explanation

_FILE_WIDTH: Final = 160
_STORY_WIDTH: Final = 110  # longer lines are hard to read


def explain(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="The run.")],
    context: typer.Context,
    *,
    tenant: Annotated[
        str | None, typer.Option(help="Whose run it is, if several tenants have one of this name.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option(min=0, help="Which request, if there are several. Otherwise the last one that was accepted."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=source.check_moment,
            help="It came later than that: spares reading the requests of all the time before.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw what it waited for, how its tenant stood, who was served."),
    ] = None,
    directory: source.From = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Say why a run waited: what each millisecond went to, who was served meanwhile, what it cost.

    Its shard is replayed, from the last checkpoint before it or from the beginning, so what is said is proved as far as
    the replay goes; where that diverges from the record, the exit status is 1. The parts of the time add up; each is
    defined in `streams.audit.explain.parts`.
    """
    from streams.audit.explain import document
    from streams.audit.explain import explain as explain_run

    if picture is not None:
        from streams.pictures import check

        check(picture)
    recording = source.recording(kafka, prefix, kafka_config, directory, context)
    with showing(lambda _what, _done, _of: None) as tell:
        found = explain_run(recording, run_id, tenant=tenant, offset=offset, since_ms=source.ms(since), tell=tell)
    if json:
        say_json(document(found))
    else:
        _print(found)
    if picture is not None:
        from streams.audit.explain.picture import draw

        draw(found, picture)
        remark(f"drawn: {picture}")
    if found.divergence is not None:
        remark(f"the record cannot be followed any further: {found.divergence}")
        raise typer.Exit(1)


def _print(found: Explanation) -> None:
    from rich.console import Console

    from streams.audit.explain import tell
    from streams.cli.audit.explain_tables import tables
    from streams.cli.tables import widen

    # Rich takes 80 columns for what is no terminal, and would cut the tables for the file or pipe they go to.
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH, highlight=False, markup=False)
    for sentence in tell(found):
        console.print(sentence, width=min(_STORY_WIDTH, console.width))
    if found.life is not None:
        shown = tables(found.life)
        widen(console, shown, _FILE_WIDTH)
        console.print(shown)
