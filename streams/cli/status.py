"""`fairstream status`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from streams.cli import options
from streams.cli.output import say_json
from streams.cli.tables import plain_table, widen
from streams.errors import visible

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

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
    """Show shards, classes and tenants: stated and observed share, queue and what it waits for, debt, oldest wait.

    The observed share is of all tokens spent so far; with --watch, of those spent since it was started.
    The gap is between the two tenants of a class whose service per weight is furthest apart; it stays below the bound.
    "turn in 3" waits for the third round from now; a round is one pass over the tenants that have work.
    Spent/estimated is over all runs; off by: how far off the estimates of half, and nine in ten, of the last runs were.
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
    shown = _tables(seen)
    widen(console, shown, _FILE_WIDTH)
    console.print(shown)


def _document(seen: Overview) -> dict[str, Any]:
    """The overview as plain values, named as in the messages: `class`, which Python cannot call so."""
    return {
        "at_ms": seen.at_ms,
        "shards": [asdict(row) for row in seen.shards],
        "classes": [_named(asdict(row)) for row in seen.classes],
        "tenants": [_named(asdict(row)) for row in seen.tenants],
    }


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in row.items()}


def _tables(seen: Overview) -> Group:
    from rich.console import Group

    if not seen.shards:
        return Group("no shard has shown itself yet: is a scheduler running?")
    return Group(_shards(seen), "", _classes(seen), "", _tenants(seen))


def _shards(seen: Overview) -> Table:
    shards = plain_table(
        "shards",
        "shard",
        "in flight",
        "window",
        "queued",
        "active",
        "known",
        "waits for",
        "policy",
        "step",
        "last step",
    )
    for shard in seen.shards:
        shards.add_row(
            str(shard.shard),
            _runs_and_tokens(shard.flight_runs, shard.flight_tokens),
            " / ".join("-" if limit is None else f"{limit:,}" for limit in (shard.window_runs, shard.window_tokens)),
            f"{shard.queued_runs:,}",
            f"{shard.active_flows:,}",
            f"{shard.known_flows:,}",
            f"{_words(shard.waiting_for)} STUCK" if shard.stuck else _words(shard.waiting_for),
            _name(f"{shard.policy} v{shard.policy_version}") if shard.policy_version >= 0 else "built-in",
            f"{shard.step:,}",
            f"{_span(shard.age_ms)} ago",
        )
    return shards


def _classes(seen: Overview) -> Table:
    classes = plain_table(
        "classes (gap and bound in tokens per weight)",
        *("class", "shard", "stated", "observed", "queued", "active", "capped", "known", "gap", "bound"),
    )
    for row in seen.classes:
        classes.add_row(
            _name(row.class_),
            str(row.shard),
            _percent(row.stated_share),
            _percent(row.observed_share),
            _runs_and_tokens(row.queued_runs, row.queued_tokens),
            f"{row.active_flows:,}",
            f"{row.blocked_flows:,}",
            f"{row.known_flows:,}",
            f"{row.gap:,}" if row.bound else "-",
            f"{row.bound:,}" if row.bound else "-",
        )
    return classes


def _tenants(seen: Overview) -> Table:
    tenants = plain_table(
        "tenants (runs / tokens)",
        *("tenant", "class", "plan, group", "weight", "stated", "observed", "queued", "waits for", "in flight"),
        *("deficit", "spent", "spent/estimated", "off by", "oldest"),
    )
    for row in seen.tenants:
        tenants.add_row(
            _name(row.tenant),
            _name(row.class_),
            _name(row.plan or "-" if row.group is None else f"{row.plan or '-'}, {row.group}"),
            str(row.weight),
            _percent(row.stated_share),
            _percent(row.observed_share),
            _runs_and_tokens(row.queued_runs, row.queued_tokens),
            f"{_words(row.skip)} in {row.rounds_to_go:,}" if row.rounds_to_go else _words(row.skip),
            _runs_and_tokens(row.flight_runs, row.flight_tokens),
            f"{row.deficit:,}",
            f"{row.spent:,}",
            "-" if row.cost_ratio is None else f"{row.cost_ratio:.2f}",
            _errors(row.cost_error_p50, row.cost_error_p90),
            "-" if row.oldest_wait_ms is None else _span(row.oldest_wait_ms),
        )
    return tenants


def _name(text: str) -> Text:
    """What somebody chose, as itself: to rich, a plain text in square brackets would be a style."""
    from rich.text import Text

    return Text(visible(text))


def _words(reason: str) -> str:
    """A word of `streams.core.waiting`, for people."""
    return reason.replace("_", " ") or "-"


def _errors(half: float | None, most: float | None) -> str:
    return "-" if half is None or most is None else f"{half:.0%} / {most:.0%}"


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
