"""`fairstream audit what-if`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.audit import source
from streams.cli.output import counted, remark, say_json
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.core.policy import Policy


def what_if(
    context: typer.Context,
    *,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="This policy all the time, instead of the recorded ones.")
    ] = None,
    fifo: Annotated[bool, typer.Option("--fifo", help="One queue for all: first come, first served.")] = False,
    quantum: Annotated[int | None, typer.Option(metavar="TOKENS", help="Another quantum.")] = None,
    window: Annotated[
        int | None, typer.Option(metavar="RUNS", help="Another number of runs in flight, in the whole deployment.")
    ] = None,
    weights: Annotated[
        list[str] | None, typer.Option(metavar="TENANT=N,...", help="Other weights of these tenants; may be repeated.")
    ] = None,
    handover: Annotated[
        int, typer.Option(metavar="MS", min=0, help="How long a run is on its way from its dispatch to its start.")
    ] = 0,
    since: source.Since = None,
    until: source.Until = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw waits and shares.")] = None,
    directory: source.From = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Play the recorded runs, at what they really cost, under other rules; side by side with what happened.

    The real core decides, in a simulated pool. What is not named stays as it was; the changes can be combined, with
    FIFO only the window. The same simulation of the rules that were in force stands beside it: as far as that is from
    what happened, so far is the rest to be trusted.

    A run costs the tokens that were settled for all of its attempts, and holds a slot as long as they worked: from the
    started report to the one that ended it. Failed, cancelled and expired runs are played with what they used; runs of
    which no attempt has ended (refused, expired or cancelled while they waited, unfinished) are left out and counted,
    since nobody knows their cost. `--json` states every rule.
    """
    from streams.audit.what_if import Change, compare, make_traffic, read_record, to_json

    if picture is not None:
        from streams.pictures import check

        check(picture)
    change = Change(
        policy=None if policy is None else _policy(policy),
        fifo=fifo,
        quantum=quantum,
        window=window,
        weights=parse_weights(weights or []),
    )
    with _busy("reading the record"):
        record = read_record(source.recording(kafka, prefix, kafka_config, directory, context))
        traffic = make_traffic(record, *source.span(since, until))
    with _busy(
        f"playing {counted(len(traffic.arrivals), 'run')} under the rules that were, and under the changed ones"
    ):
        found = compare(traffic, change, handover_ms=handover)
    if picture is not None:
        from streams.audit.what_if.picture import draw

        draw(found, picture)
        remark(f"drawn: {picture}")
    if json:
        say_json(to_json(found))
        return
    from rich.console import Console

    from streams.audit.what_if import WIDTH, show

    console = Console(highlight=False, markup=False)
    # What is no terminal would be taken for one of 80 columns.
    show(found, console if sys.stdout.isatty() else Console(width=WIDTH, highlight=False, markup=False))


def _busy(doing: str) -> AbstractContextManager[object]:
    """Say on a terminal what takes so long, while it does."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(doing) if console.is_terminal else nullcontext()


def parse_weights(given: list[str]) -> dict[str, int]:
    """Return what `acme=4,zenith=1` says. Raises `ConfigError`, naming the part that is no weight."""
    weights: dict[str, int] = {}
    for part in (part for text in given for part in text.split(",")):
        tenant, _, weight = part.rpartition("=")
        if not tenant or not weight.isdecimal():
            raise ConfigError("write TENANT=N, with N a whole number above 0", field="--weights", value=part)
        weights[tenant] = int(weight)
    return weights


def _policy(path: Path) -> Policy:
    from streams.admin.policy import load_policy

    return load_policy(path)
