"""`fairstream status`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from streams.cli import options
from streams.cli.output import say_json

if TYPE_CHECKING:
    from rich.console import Group

    from streams.client.status_view import Overview

_REFRESH_S: Final = 1.0
_FILE_WIDTH: Final = 200


def status(
    *,
    tenant: Annotated[str | None, typer.Option(help="Show this tenant only.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it anew every second, until Ctrl-C.")] = False,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Show shards and tenants: stated and observed share, queue, in flight, deficit or debt, oldest wait.

    The observed share is of all tokens spent so far; with --watch, of those spent since it was started.
    """
    from streams import clock
    from streams.client.status import StatusReader
    from streams.client.status_view import overview, spent_so_far

    with StatusReader(options.kafka_settings(kafka, prefix, kafka_config)) as reader:
        reader.catch_up()
        if not watch:
            _print(overview(reader.statuses, clock.now_ms(), tenant=tenant), json=json)
            return
        since = spent_so_far(reader.statuses)
        from rich.live import Live

        with Live(auto_refresh=False) as live:
            while True:
                seen = overview(reader.statuses, clock.now_ms(), tenant=tenant, since=since)
                if json:
                    say_json(_document(seen), indent=False)
                else:
                    live.update(_tables(seen), refresh=True)
                reader.follow(_REFRESH_S)


def _print(seen: Overview, *, json: bool) -> None:
    if json:
        say_json(_document(seen))
        return
    from rich.console import Console

    # Rich takes 80 columns for what is no terminal, and would cut the table for the file or pipe it goes to.
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    console.print(_tables(seen))


def _document(seen: Overview) -> dict[str, Any]:
    """The overview as plain values, named as in the messages: `class`, which Python cannot call so."""
    return {
        "at_ms": seen.at_ms,
        "shards": [asdict(row) for row in seen.shards],
        "tenants": [{name.rstrip("_"): value for name, value in asdict(row).items()} for row in seen.tenants],
    }


def _tables(seen: Overview) -> Group:
    from rich.console import Group
    from rich.table import Table

    shards = Table(title="shards", title_justify="left", box=None, pad_edge=False)
    for name in ("shard", "in flight", "window", "queued", "active", "policy", "step", "last step"):
        shards.add_column(name, justify="right")
    for shard in seen.shards:
        shards.add_row(
            str(shard.shard),
            _runs_and_tokens(shard.flight_runs, shard.flight_tokens),
            " / ".join("-" if limit is None else f"{limit:,}" for limit in (shard.window_runs, shard.window_tokens)),
            f"{shard.queued_runs:,}",
            f"{shard.active_flows:,}",
            f"{shard.policy} v{shard.policy_version}" if shard.policy_version >= 0 else "built-in",
            f"{shard.step:,}",
            f"{_span(shard.age_ms)} ago",
        )
    if not seen.shards:
        return Group("no shard has shown itself yet: is a scheduler running?")
    tenants = Table(title="tenants (runs / tokens)", title_justify="left", box=None, pad_edge=False)
    tenants.add_column("tenant")
    for name in ("class", "plan", "weight", "stated", "observed", "queued", "in flight", "deficit", "spent", "oldest"):
        tenants.add_column(name, justify="right")
    for row in seen.tenants:
        tenants.add_row(
            row.tenant,
            row.class_,
            row.plan or "-",
            str(row.weight),
            _percent(row.stated_share),
            _percent(row.observed_share),
            _runs_and_tokens(row.queued_runs, row.queued_tokens),
            _runs_and_tokens(row.flight_runs, row.flight_tokens),
            f"{row.deficit:,}",
            f"{row.spent:,}",
            "-" if row.oldest_wait_ms is None else _span(row.oldest_wait_ms),
        )
    return Group(shards, "", tenants)


def _runs_and_tokens(runs: int, tokens: int) -> str:
    return f"{runs:,} / {tokens:,}" if runs else "-"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _span(ms: int) -> str:
    """A duration in the unit that a person would name."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms} ms"
