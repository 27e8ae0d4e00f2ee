"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from streams.kafka import DEFAULT_PREFIX, KafkaSettings, read_options

DEFAULT_KAFKA: Final = "127.0.0.1:9092"

Kafka = Annotated[
    str, typer.Option("--kafka", envvar="FAIRSTREAM_KAFKA", metavar="HOST:PORT", help="Kafka; several with commas.")
]
Prefix = Annotated[
    str, typer.Option("--prefix", envvar="FAIRSTREAM_PREFIX", metavar="TEXT", help="What topic names begin with.")
]
KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        envvar="FAIRSTREAM_KAFKA_CONFIG",
        metavar="FILE",
        help="librdkafka properties (`name = value` lines), for SASL and TLS.",
    ),
]
OwnTopicOf = Annotated[
    str | None,
    typer.Option(
        "--own-topic-of",
        metavar="TENANT",
        help="Write to the topic that is this tenant's own, for a gate to pass on (see `fairstream gate`).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON; errors too, on standard error.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell more, also what the Kafka client says.")]
Shards = Annotated[
    int, typer.Option("--shards", envvar="FAIRSTREAM_SHARDS", min=1, help="Shards: partitions of the sharded topics.")
]
DispatchPartitions = Annotated[
    int,
    typer.Option(
        "--dispatch-partitions",
        envvar="FAIRSTREAM_DISPATCH_PARTITIONS",
        min=1,
        help="Partitions of the dispatch topic: how many workers of a classic group can share the work.",
    ),
]

__all__ = [
    "DEFAULT_KAFKA",
    "DEFAULT_PREFIX",
    "DispatchPartitions",
    "Json",
    "Kafka",
    "KafkaConfig",
    "OwnTopicOf",
    "Prefix",
    "Shards",
    "Verbose",
    "kafka_settings",
]


def kafka_settings(servers: str, prefix: str, config: Path | None) -> KafkaSettings:
    """Return what the three options say together. Raises `ConfigError`."""
    return KafkaSettings(servers=servers, prefix=prefix, options=read_options(config) if config else {})
