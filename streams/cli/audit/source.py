"""Where an auditor's command reads: the live topics, or a directory that `fairstream audit export` has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options

if TYPE_CHECKING:
    from streams.audit.recording import Recording

From = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Read what `fairstream audit export` wrote there, instead of Kafka."),
]


def recording(servers: str, prefix: str, config: Path | None, directory: Path | None) -> Recording:
    """Return what the options name. Raises `ConfigError`, or what Kafka says."""
    if directory is not None:
        from streams.audit.export import ExportedRecording

        return ExportedRecording(directory)
    from streams.audit.kafka_recording import KafkaRecording

    return KafkaRecording(options.kafka_settings(servers, prefix, config))
