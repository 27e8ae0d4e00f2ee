"""`fairstream cancel`."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli import options
from streams.cli.output import counted, say, say_json
from streams.errors import visible


def cancel(
    tenant: Annotated[str, typer.Argument(help="Whose run it is.")],
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID...", help="The runs to take back.")],
    *,
    own_topic_of: options.OwnTopicOf = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Take runs back, whether they are queued, delayed or in progress."""
    from streams.client.publisher import Publisher

    settings = options.kafka_settings(kafka, prefix, kafka_config)
    with Publisher(settings, own_topic_of=own_topic_of) as publisher:
        publisher.check()
        places = [publisher.cancel(tenant, run_id).result() for run_id in run_ids]
    if json:
        say_json([{"tenant": tenant, "run_id": each, **at._asdict()} for each, at in zip(run_ids, places, strict=True)])
    else:
        say(f"asked to cancel {counted(len(run_ids), 'run')} of {visible(tenant)}")
