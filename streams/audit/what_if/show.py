"""The comparison for people (tables of at most 110 columns, or of 80 where there is no more room)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streams.audit.what_if.document import tenants_of, totals
from streams.audit.what_if.traffic import OUTSIDE
from streams.errors import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from streams.audit.what_if.comparison import Side, WhatIf

WIDTH: Final = 110

_WAITS: Final = ("first", "p50", "p95", "longest")
_SHOWN: Final = 40  # tenants in a table, those with most tokens; JSON has all


def show(found: WhatIf, console: Console) -> None:
    """Print what would have been, beside what was."""
    console.print(_headline(found))
    console.print(_shares(found))
    for names in [_WAITS] if console.width >= WIDTH else [_WAITS[:2], _WAITS[2:]]:
        console.print(Padding(_waits(found, names), (1, 0)))
    console.print(Text("\n".join(_notes(found)), style="dim"))


def _headline(found: WhatIf) -> Text:
    traffic = found.traffic
    begin = datetime.fromtimestamp(traffic.begin_ms / 1_000, UTC)
    text = Text()
    text.append(f"what if: {visible(found.change.title)}\n", style="bold")
    text.append(
        f"{len(traffic.arrivals):,} runs of {len(found.happened.waits):,} tenants since {begin:%Y-%m-%d %H:%M:%S} UTC, "
        f"{sum(arrival.tokens for arrival in traffic.arrivals):,} tokens. Happened: as the topics say. Model: the same "
        "runs, simulated under the rules that were in force. What if: the same simulation under the changed ones."
    )
    return text


def _shares(found: WhatIf) -> Table:
    table = _table("\nweight", "\nruns", "\ntokens")
    for title in ("share\nhappened", "\nmodel", "\nwhat if", "stated\nthen", "\nwhat if", "refused\nwhat if"):
        table.add_column(title, justify="right", no_wrap=True)
    for tenant in _shown(found):
        waits = found.happened.waits.get(tenant)
        table.add_row(
            Text(visible(tenant)),
            _weights(found, tenant),
            f"{waits.runs:,}" if waits else "",
            f"{found.happened.tokens.get(tenant, 0):,}",
            *(_part(side, tenant) for side in (found.happened, found.model, found.other)),
            *(_stated(side, tenant) for side in (found.happened, found.other)),
            _turned_away(found.other, tenant),
        )
    return table


def _waits(found: WhatIf, names: Sequence[str]) -> Table:
    table = _table()
    for name in names:
        for title in (f"{name} wait\nhappened", "\nmodel", "\nwhat if"):
            table.add_column(title, justify="right", no_wrap=True)
    for tenant in _shown(found):
        sides = (found.happened.waits.get(tenant), found.model.waits.get(tenant), found.other.waits.get(tenant))
        cells = [_seconds(getattr(side, name)) if side else "" for name in names for side in sides]
        table.add_row(Text(visible(tenant)), *cells)
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("\ntenant", overflow="ellipsis", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _notes(found: WhatIf) -> list[str]:
    traffic, off = found.traffic, found.distance
    lines = ["Waits go from the request to the start of its run, in seconds."]
    others = len(_known(found)) - len(_shown(found))
    if others:
        lines.append(f"{others:,} more tenants, of fewer tokens, are not shown; --json has them.")
    if found.contest is None:
        lines.append("No two tenants were ever backlogged together: there are no shares to compare.")
    else:
        interval = found.contest.interval
        lines.append(
            f"Shares are of the tokens handed out from {interval.from_ms / 1_000:.1f} s to "
            f"{interval.until_ms / 1_000:.1f} s after the first arrival: the longest time in which the same tenants "
            f"({visible(', '.join(found.contest.tenants))}) were backlogged all the time, as it happened, and weights "
            "the same."
        )
        if not found.other.divided:
            lines.append(
                "No share is stated for what if: fewer than two tenants would have been backlogged in all of that "
                "time, or classes, groups, caps or pauses have a say, too."
            )
    if traffic.shards > 1:
        line = f"The window is divided evenly over {traffic.shards} shards: weights divide what a shard has."
        if found.change.fifo:
            line += " FIFO has all of it for one queue: no place is idle in one shard while runs wait in another."
        lines.append(line)
    lines.append(
        f"All was done after {_seconds(found.happened.makespan_ms)} s; in the model after "
        f"{_seconds(found.model.makespan_ms)} s; what if: {_seconds(found.other.makespan_ms)} s."
    )
    lines.append(
        f"The model is off by up to {_seconds(off.half_p50)} s in the p50 wait of half of the tenants and by "
        f"{_signed(off.p50[1])} s at most ({visible(off.p50[0])}); in the p95 by {_seconds(off.half_p95)} s and "
        f"{_signed(off.p95[1])} s ({visible(off.p95[0])}); by {float(off.share[1]) * 100:+.1f} points of a share "
        f"({visible(off.share[0]) or 'nobody'}) and {float(off.makespan) * 100:+.1f} % of the time for all. Smaller "
        "differences say nothing."
    )
    lines.append(
        f"From dispatch to start half of the runs took up to {traffic.handover_ms} ms; in the model all take "
        f"{found.handover_ms} ms (--handover)."
    )
    left = totals(traffic.left_out)
    outside = left.pop(OUTSIDE, 0)
    if outside:
        lines.append(f"Left out, since they arrived before or after: {outside:,} runs.")
    if left:
        whys = ", ".join(f"{runs:,} {why}" for why, runs in left.items())
        lines.append(f"Left out, since nobody knows what they would have cost: {whys}.")
    if found.other.waiting:
        lines.append(f"Never begun, their tenants being paused: {sum(found.other.waiting.values()):,} runs.")
    if traffic.steps_cut:
        lines.append(f"Of {traffic.steps_cut:,} steps the topics no longer have all inputs.")
    return lines


def _known(found: WhatIf) -> list[str]:
    """Return those of whom there is something in the interval."""
    left_out = found.traffic.left_out
    return [
        tenant
        for tenant in tenants_of(found)
        if tenant in found.happened.tokens or left_out.get(tenant, {}).keys() - {OUTSIDE}
    ]


def _shown(found: WhatIf) -> list[str]:
    known, tokens = _known(found), found.happened.tokens
    chosen = set(sorted(known, key=lambda tenant: -tokens.get(tenant, 0))[:_SHOWN])
    return [tenant for tenant in known if tenant in chosen]


def _weights(found: WhatIf, tenant: str) -> str:
    then, now = (side.policy.rules_for(tenant).weight for side in (found.happened, found.other))
    return str(then) if then == now else f"{then} → {now}"


def _part(side: Side, tenant: str) -> str:
    total = sum(share.observed for share in side.shares.values())
    share = side.shares.get(tenant)
    return f"{100 * share.observed / total:.1f} %" if share and total else ""


def _stated(side: Side, tenant: str) -> str:
    total = sum(share.observed for share in side.shares.values())
    share = side.shares.get(tenant) if side.divided else None
    return f"{100 * share.stated / total:.1f} %" if share and total else ""


def _turned_away(side: Side, tenant: str) -> str:
    runs = sum(side.refused.get(tenant, {}).values()) + side.waiting.get(tenant, 0)
    return f"{runs:,}" if runs else ""


def _seconds(ms: int) -> str:
    seconds = ms / 1_000
    return f"{seconds:.2f}" if seconds < 100 else f"{seconds:,.0f}"  # noqa: PLR2004 - where hundredths stop to matter


def _signed(ms: int) -> str:
    return f"{ms / 1_000:+.2f}"
