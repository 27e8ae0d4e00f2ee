"""`fairstream simulate published`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams.cli import options


def published(
    *,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the differences over the ten minutes.")
    ] = None,
    json: options.Json = False,
) -> None:
    """The published figures of 27 tenants at one engine (OSDI 2024): as they are, as they come out here, and ours.

    A real trace of ten minutes, played at a model of the engine it was measured on: FIFO, the virtual token counter,
    and this scheduler before that engine. Takes about a minute.
    """
    from streams import pictures
    from streams.bench.progress import counting_to
    from streams.cli.output import say_json
    from streams.simulate.published.figures import RUNS, SCHEDULERS, reproduce

    if picture is not None:
        pictures.check(picture)
    with counting_to(RUNS * len(SCHEDULERS), "plays") as tell:
        played = iter(range(1, RUNS * len(SCHEDULERS) + 1))
        rows = reproduce(done=lambda: tell(next(played)))
    if picture is not None:
        from streams.simulate.published.picture import draw

        draw(rows, picture)
    if json:
        say_json([each._asdict() for each in rows])
    else:
        from rich.console import Console

        from streams.simulate.published.show import show

        show(rows, Console(width=100))
