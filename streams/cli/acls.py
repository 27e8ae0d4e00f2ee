"""`fairstream acls`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.admin.acls import Right


def acls(
    *,
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="scheduler, producer, worker, auditor, operator, gate, admin, migration-from or migration-to.",
        ),
    ],
    principal: Annotated[str, typer.Option(metavar="User:NAME", help="Who is to have it, as Kafka knows them.")],
    group: Annotated[
        str | None, typer.Option(help="The consumer or share group that they join, if not the usual one.")
    ] = None,
    shards: options.Shards = 1,
    own_topic_of: Annotated[
        str | None,
        typer.Option(metavar="TENANT", help="With --role producer: only this tenant's, through a gate."),
    ] = None,
    grant: Annotated[bool, typer.Option("--apply", help="Grant what is missing; takes Alter on the cluster.")] = False,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Show the least rights (ACLs) with which a role can do its work, or grant them.

    Without --apply nothing is asked of Kafka: what is shown can be applied by other means. A scheduler has a
    transactional id for each shard, so name its --shards. The admin's --group is the workers'.

    A user of `fairstream migrate` has two roles: migration-from with the present --prefix and --shards, migration-to
    with the new ones. Their --group is the schedulers'.
    """
    from streams.admin import acls as library
    from streams.admin.kafka import admin_client

    settings = options.kafka_settings(kafka, prefix, kafka_config)
    library.check_principal(principal)
    wanted = library.rights(library.role_named(role), settings, shards=shards, group=group, own_topic_of=own_topic_of)
    granted: tuple[Right, ...] = ()
    if grant:
        granted = library.apply(admin_client(settings), principal, wanted).granted
    if json:
        say_json(
            {
                "role": role,
                "principal": principal,
                "rights": [{**right._asdict(), "granted": right in granted} for right in wanted],
            }
        )
        return
    _show(wanted)
    if grant:
        say(f"{principal}: {counted(len(granted), 'right')} granted, {len(wanted) - len(granted)} held before")
        return
    say("\nto grant them, use --apply, or Kafka's own tool:\n")
    for command in library.commands(principal, wanted, settings.servers):
        say(command)


def _show(rights: Iterable[Right]) -> None:
    """One line a thing."""
    lines = [
        (resource, name + "*" * prefixed, ", ".join(right.operation for right in those))
        for (resource, name, prefixed), those in groupby(rights, key=lambda right: right.thing())
    ]
    wide = max(len(name) for _, name, _ in lines)
    for resource, name, operations in lines:
        say(f"{resource:<16} {name:<{wide}}  {operations}")
