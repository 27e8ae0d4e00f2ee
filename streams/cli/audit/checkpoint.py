"""`fairstream audit checkpoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from streams.rows.checkpoint import Foot


def checkpoint(
    *,
    shard: Annotated[
        list[int] | None, typer.Option("--shard", min=0, help="Only this one; may be given several times.")
    ] = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Write a checkpoint of each shard as it is now, from which a replay can begin.

    Schedulers write one an hour, or as FAIRSTREAM_CHECKPOINT_INTERVAL_S says. This is for what they have not: before
    inputs are deleted by hand, or if they are told to write none. It takes a scheduler's rights, and disturbs none.
    """
    from streams.admin.checkpointing import shards_to_copy, write_checkpoint

    settings = options.kafka_settings(kafka, prefix, kafka_config)
    written = {number: write_checkpoint(settings, number) for number in shards_to_copy(settings, shard)}
    if json:
        say_json({"checkpoints": [_as_data(number, foot) for number, foot in written.items()]})
        return
    for number, foot in written.items():
        if foot is None:
            say(f"shard {number}: it has no state yet, so a replay begins at the beginning")
        else:
            say(f"shard {number}: after step {foot.step:,}: {counted(foot.rows, 'row')} of {settings.topics.state}")


def _as_data(shard: int, foot: Foot | None) -> dict[str, object]:
    if foot is None:
        return {"shard": shard, "step": None}
    return {"shard": shard, "step": foot.step, "now_ms": foot.now_ms, "rows": foot.rows, "head": foot.head}
