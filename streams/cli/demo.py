"""`fairstream demo`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streams.cli import options


class Story(StrEnum):
    """Which story is told."""

    BOTH = "both"
    MERIDIAN = "meridian"
    TRACE = "trace"


def demo(
    *,
    story: Annotated[
        Story, typer.Option(help="The greedy tenant (meridian), the real trace of 27 tenants, or both.")
    ] = Story.BOTH,
    seed: Annotated[int | None, typer.Option(help="Of the first story's arrivals and costs.")] = None,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Without it a local one, while it lasts.")
    ] = None,
    kafka_config: options.KafkaConfig = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the topics of each story there, for `fairstream audit ... --from`."),
    ] = None,
    json: options.Json = False,
) -> None:
    """The story on a real Kafka: one tenant files 900 runs, the others their few. Beside FIFO.

    Exit status 1 if a claim that the demo makes does not hold.
    """
    from streams.demo import DemoOptions, run_demo

    settings = DemoOptions(
        kafka=kafka, kafka_config=kafka_config, story=story.value, seed=seed, export=export, json=json
    )
    raise typer.Exit(run_demo(settings))
