"""Where an auditor's command reads: the live topics, or a directory that `fairstream audit export` has written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.audit.recording import Recording

From = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="Read what `fairstream audit export` wrote there, instead of Kafka."),
]


def check_moment(moment: str | None) -> str | None:
    """Refuse what is no moment while it is known which option it stands in. Raises typer's `BadParameter`."""
    ms(moment)
    return moment


Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        callback=check_moment,
        help="From then on: 2026-07-01T12:00:00Z, or 2h for two hours ago.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", callback=check_moment, help="Up to then, written as --since is."),
]


def ms(moment: str | None) -> int | None:
    """Return a moment of --since or --until in ms since the epoch. Raises typer's `BadParameter`."""
    from streams import clock
    from streams.cli.moments import parse_past

    return None if moment is None else round(parse_past(moment, clock.now_ms()).timestamp() * 1000)


def span(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return both moments, as `ms` does. Raises `ConfigError` if there is no time between them."""
    since_ms, until_ms = ms(since), ms(until)
    if since_ms is not None and until_ms is not None and until_ms < since_ms:
        raise ConfigError("is before --since", field="until", value=until)
    return since_ms, until_ms


def recording(
    servers: str,
    prefix: str,
    config: Path | None,
    directory: Path | None = None,
    context: typer.Context | None = None,
) -> Recording:
    """Return what the options name. `context`: which were given. Raises `ConfigError`, or what Kafka says."""
    if directory is not None:
        if context is not None:
            _refuse_kafka(context)
        from streams.audit.export import ExportedRecording

        return ExportedRecording(directory)
    from streams.audit.kafka_recording import KafkaRecording

    return KafkaRecording(options.kafka_settings(servers, prefix, config))


def _refuse_kafka(context: typer.Context) -> None:
    """An auditor who names a directory and a Kafka must not take what is proved of one for proved of the other."""
    for name in ("kafka", "prefix", "kafka_config"):
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":  # in the environment it is there for all commands
            raise typer.BadParameter(f"--from reads a directory: leave out --{name.replace('_', '-')}")
