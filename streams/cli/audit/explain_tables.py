"""The tables of `fairstream audit explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from streams.audit.explain import parts
from streams.audit.explain.words import moment, percent, span
from streams.cli.tables import plain_table
from streams.errors import visible

if TYPE_CHECKING:
    from rich.table import Table

    from streams.audit.explain.life import Life

_SERVED: Final = 15  # tenants
_POINTS: Final = 12


def tables(life: Life) -> Group:
    """Return what the story rests on."""
    found = [_time(life), *([_attempts(life)] if life.attempts else []), _served(life), _stood(life)]
    return Group(*(each for table in found for each in ("", table)))


def _time(life: Life) -> Table:
    divided = life.divided
    whole = sum(divided.values())
    table = plain_table("where the time went", "part", "ms", "share")
    table.add_column("")
    for part, ms in divided.items():
        what = parts.WORDS[part] if part in parts.WORK else f"waited {parts.WORDS[part]}"
        table.add_row(part, f"{ms:,}", f"{ms / whole:.1%}", what)
    table.add_row("sum", f"{whole:,}", "", f"of which it waited {span(parts.waited_ms(divided))}")
    return table


def _attempts(life: Life) -> Table:
    table = plain_table(
        "attempts (tokens)",
        *(
            "attempt",
            "dispatched",
            "step",
            "round",
            "waited",
            "deficit",
            "charged",
            "cost",
            "took",
            "worker",
            "outcome",
        ),
    )
    for each in life.attempts:
        actual = each.actual if each.amended is None else each.amended
        worker = next((report.worker for report in each.reports if report.worker), None)
        table.add_row(
            str(each.number),
            moment(each.dispatched.at_ms),
            f"{each.dispatched.step:,}",
            f"{each.round:,}",
            span(sum(each.waited.values())),
            f"{each.deficit_before:,}",
            f"{each.estimate:,}",
            "-" if actual is None else f"{actual:,}",
            span(sum(each.took.values())),
            _name(worker or "-"),
            _name(f"{each.outcome or 'in flight'}" + (f": {each.revoked}" if each.revoked else "")),
        )
    return table


def _served(life: Life) -> Table:
    table = plain_table(
        "served while it waited (tokens; weight, share and queue as they were when it came)",
        *("tenant", "class", "weight", "stated", "got", "runs", "tokens", "corrected", "rounds", "queued", "deficit"),
    )
    served = life.served
    for each in served[:_SERVED]:
        table.add_row(
            _name(each.tenant),
            _name(each.class_),
            "-" if each.weight is None else str(each.weight),
            percent(each.stated_share_ppm),
            percent(each.share_ppm),
            f"{each.runs:,}",
            f"{each.tokens:,}",
            f"{each.corrected:+,}" if each.corrected else "-",
            f"{each.rounds:,}",
            "-" if each.queued_runs is None else f"{each.queued_runs:,} / {each.queued_tokens:,}",
            f"{_number(each.deficit_before)} to {_number(each.deficit_after)}",
        )
    if len(served) > _SERVED:
        table.caption = f"and {len(served) - _SERVED:,} more; --json tells all"
        table.caption_justify = "left"
    return table


def _stood(life: Life) -> Table:
    table = plain_table(
        "how its tenant stood", "after", "step", "waits for", "runs ahead", "deficit", "round", "its runs", "shard's"
    )
    points = life.curve.points
    step = max(1, -(-len(points) // _POINTS))
    shown = points[::step] if points[-1] in points[::step] else [*points[::step], points[-1]]
    for point in shown:
        table.add_row(
            span(point.at_ms - life.arrived_ms),
            f"{point.step:,}",
            point.part.replace("_", " ") or "in flight",
            f"{point.ahead_runs:,}",
            f"{point.deficit:,}",
            f"{point.round:,}",
            f"{point.flight_runs:,}",
            f"{point.shard_flight_runs:,} / {'-' if life.window_runs is None else f'{life.window_runs:,}'}",
        )
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _name(text: str) -> Text:
    """What somebody chose, as itself: to rich, a plain text in square brackets would be a style."""
    return Text(visible(text))
