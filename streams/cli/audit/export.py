"""`fairstream audit export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streams.cli import options
from streams.cli.audit import source
from streams.cli.audit.bars import showing
from streams.cli.output import counted, remark, say, say_json


def export(
    directory: Annotated[Path, typer.Argument(help="Where to write: a directory that is not there yet, or is empty.")],
    *,
    topics: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these, separated by commas: requests, journal, ...")
    ] = "",
    since: source.Since = None,
    until: source.Until = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Write the topics into a directory, so that an auditor needs no access to Kafka.

    Compressed files of JSON lines (`zcat FILE | jq`), and a manifest with their hashes. The other commands read it with
    --from. With --since it begins at the last checkpoint before that time, so that it can be replayed; with --until it
    ends with the last step before that, and holds no state.
    """
    from streams import clock
    from streams.audit.export import TOPICS, Window
    from streams.audit.export import export as write

    recording = source.recording(kafka, prefix, kafka_config)
    window = Window(recording, *source.span(since, until))
    chosen = [name.strip() for name in topics.split(",")] if topics else TOPICS
    with showing(_told) as progress:
        manifest = write(recording, directory, now_ms=clock.now_ms(), topics=chosen, window=window, progress=progress)
    records = dict.fromkeys(manifest.topics, 0)
    size = 0
    for partition in manifest.partitions:
        records[partition.topic] += sum(file.records for file in partition.files)
        size += sum(file.bytes for file in partition.files)
    if json:
        say_json({"directory": str(directory), "bytes": size, "records": records})
        return
    for topic, number in records.items():
        say(f"{manifest.prefix + topic:<24}{number:>14,}")
    say(f"{counted(sum(records.values()), 'record')}, {size:,} bytes, in {directory}")


def _told(topic: str, done: int, of: int) -> None:
    """Say that a topic is done, where nobody watches."""
    if done == of:
        remark(f"{topic}: {of:,} offsets")
