"""`fairstream topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.output import say, say_json

if TYPE_CHECKING:
    from streams.admin.topics import Plan


def topics(
    *,
    shards: options.Shards = 1,
    dispatch_partitions: options.DispatchPartitions = 8,
    replication: Annotated[
        int | None, typer.Option(min=1, help="Replicas; without it 3, or as many as there are brokers.")
    ] = None,
    share_group: Annotated[
        bool,
        typer.Option(
            "--share-group/--no-share-group",
            help="Let the workers' share group read as it must, so that workers need no right to see to it.",
        ),
    ] = True,
    worker_group: Annotated[str | None, typer.Option(help="That group; without it <prefix>workers.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Create the topics, or check those that are there; and prepare the workers' share group."""
    from streams.admin import topics as library
    from streams.admin.kafka import admin_client, look
    from streams.client.share_group import prepare

    settings = options.kafka_settings(kafka, prefix, kafka_config)
    admin = admin_client(settings)
    group = worker_group or settings.worker_group
    prepared = False
    layout = library.Layout(
        shards=shards, dispatch_partitions=dispatch_partitions, prefix=prefix, replication=replication
    )
    if dry_run:
        wanted = library.wanted(layout, look(admin).brokers)
        plan = library.plan(library.describe(admin, [topic.name for topic in wanted]), wanted)
    else:
        plan = library.ensure(admin, layout)
        prepared = share_group and prepare(settings, group)
    if json:
        say_json({"dry_run": dry_run, **plan._asdict(), "prepared_group": group if prepared else None})
    else:
        _show(plan, done=not dry_run)
        if prepared:
            say(f"prepared the share group {group}")
    if plan.problems:
        raise typer.Exit(2)


def _show(plan: Plan, *, done: bool) -> None:
    created, configured = ("created", "set") if done else ("would create", "would set")
    for topic in plan.create:
        say(f"{created} {topic.name}: {topic.partitions} partitions, {topic.replication} replicas")
    for name, settings in plan.configure:
        say(f"{configured} {name}: {', '.join(f'{key}={value}' for key, value in settings.items())}")
    for problem in plan.problems:
        say(f"wrong: {problem}")
    if not any(plan):
        say("all topics are as they should be")
