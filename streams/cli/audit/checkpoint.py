"""`fairstream audit checkpoint`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.output import counted, say, say_json

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from streams.rows.checkpoint import Foot


def checkpoint(
    *,
    shard: Annotated[list[int] | None, typer.Option("--shard", min=0, help="Only this one; may be repeated.")] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Keep the state there instead; that takes the right to read only."),
    ] = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Write a checkpoint of each shard as it is now, from which a replay can begin.

    Schedulers write one an hour, or as FAIRSTREAM_CHECKPOINT_INTERVAL_S says. This is for what they have not: before
    inputs are deleted by hand, or if they are told to write none. It takes a scheduler's rights, and disturbs none.

    With --to an auditor keeps the state of all shards where nobody else can change it, and a replay may begin with it:
    `fairstream audit replay --start`.
    """
    settings = options.kafka_settings(kafka, prefix, kafka_config)
    if to is not None:
        _keep(settings, to, json=json)
        return
    from streams.admin.checkpointing import shards_to_copy, write_checkpoint

    written = {number: write_checkpoint(settings, number) for number in shards_to_copy(settings, shard)}
    if json:
        say_json({"checkpoints": [_as_data(number, foot) for number, foot in written.items()]})
        return
    for number, foot in written.items():
        if foot is None:
            say(f"shard {number}: it has no state yet, so a replay begins at the beginning")
        else:
            say(f"shard {number}: after step {foot.step:,}: {counted(foot.rows, 'row')} of {settings.topics.state}")


def _keep(settings: KafkaSettings, directory: Path, *, json: bool) -> None:
    from streams import clock
    from streams.audit.export import export
    from streams.audit.kafka_recording import KafkaRecording

    manifest = export(KafkaRecording(settings), directory, now_ms=clock.now_ms(), topics=["state"])
    records = sum(file.records for each in manifest.partitions for file in each.files)
    if json:
        say_json({"directory": str(directory), "records": records})
    else:
        say(f"kept {counted(records, 'record')} of {settings.topics.state} in {directory}")


def _as_data(shard: int, foot: Foot | None) -> dict[str, object]:
    if foot is None:
        return {"shard": shard, "step": None}
    return {"shard": shard, "step": foot.step, "now_ms": foot.now_ms, "rows": foot.rows, "head": foot.head}
