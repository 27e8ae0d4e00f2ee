"""`fairstream gate [add]`."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli import options
from streams.cli.logs import configure_logging
from streams.cli.output import say, say_json

app = typer.Typer()


@app.callback(invoke_without_command=True)
def gate(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option(help="Tells this gate from others; without it the host's name.")] = "",
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    verbose: options.Verbose = False,
) -> None:
    """Let tenants file requests in their own name only: pass on what stands on their own topics, until SIGTERM.

    With tenants that have Kafka users of their own, only each tenant may write to its topic (`fairstream gate add`),
    and only gates and schedulers to the requests topic. Any number of gates share the topics.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    configure_logging(verbose=verbose)
    from streams.gate import GateSettings, run_gate

    run_gate(options.kafka_settings(kafka, prefix, kafka_config), GateSettings(name=name))


@app.command()
def add(
    tenants: Annotated[list[str], typer.Argument(metavar="TENANT...", help="Who gets a topic.")],
    *,
    replication: Annotated[
        int | None, typer.Option(min=1, help="Replicas; without it 3, or as many as there are brokers.")
    ] = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Create the topics of tenants, or check those that are there. Running gates find them within seconds."""
    from streams.admin.intakes import ensure_intakes
    from streams.admin.kafka import admin_client

    settings = options.kafka_settings(kafka, prefix, kafka_config)
    topics, done = ensure_intakes(admin_client(settings), prefix, tenants, replication)
    created = {topic.name for topic in done.create}
    if json:
        say_json([{"topic": topic.name, "created": topic.name in created} for topic in topics])
        return
    for topic in topics:
        say(f"{'created' if topic.name in created else 'there already:'} {topic.name}")


def _refuse_options(context: typer.Context) -> None:
    """The options of the gate itself mean nothing to its commands: say so, rather than ask another Kafka."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"write --{name.replace('_', '-')} behind {context.invoked_subcommand!r}")
