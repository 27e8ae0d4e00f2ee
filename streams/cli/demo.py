"""`fairstream demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli import options


def demo(
    *,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Without it a local one, while it lasts.")
    ] = None,
    json: options.Json = False,
) -> None:
    """The story on a real Kafka: one tenant files 900 runs, the others their few. Beside FIFO."""
    from streams.demo import DemoOptions, run_demo

    raise typer.Exit(run_demo(DemoOptions(kafka=kafka, json=json)))
