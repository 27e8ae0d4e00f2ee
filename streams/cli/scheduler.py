"""`fairstream scheduler`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams.cli import options
from streams.cli.logs import configure_logging


def scheduler(
    *,
    shards: options.Shards = 1,
    dispatch_partitions: options.DispatchPartitions = 8,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create missing topics instead of refusing to start.")
    ] = False,
    group: Annotated[str | None, typer.Option(help="Consumer group; without it made from the prefix.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Working folder; nothing in it outlives the process.")] = None,
    web_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Serve /healthz and /readyz here.")] = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    verbose: options.Verbose = False,
) -> None:
    """Serve shards until SIGTERM. Any number of these share the shards of a deployment.

    Further settings come from the environment: FAIRSTREAM_ and the names of `streams.app.settings` in capitals.
    """
    configure_logging(verbose=verbose)
    from streams.app.main import run_scheduler
    from streams.app.settings import Settings

    settings = Settings.load(
        shards=shards,
        dispatch_partitions=dispatch_partitions,
        create_topics=create_topics or None,
        group=group,
        data_dir=data_dir,
        web_port=web_port,
        kafka=kafka,
        prefix=prefix,
        kafka_config=kafka_config,
    )
    raise typer.Exit(run_scheduler(settings))
