"""The figures for people (tables of at most 100 columns) and for programs (JSON)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import orjson
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streams.demo.claims import Claim, judged_tenants
from streams.demo.measure import Figures
from streams.simulate.report import Share
from streams.simulate.waits import Waits

WIDTH: Final = 100

_STYLES: Final = {"*": "bold", "+": "", "": "dim"}


def show(figures: Figures, claims: list[Claim], console: Console) -> None:
    """Print a story: what it was, its table, its claims."""
    console.print(_headline(figures))
    console.print(_table(figures))
    console.print(_notes(figures))
    console.print(_verdicts(claims))


def to_json(results: list[tuple[Figures, list[Claim]]]) -> bytes:
    """Return everything that `show` prints, and what it leaves out, as one JSON document."""
    document = {
        "holds": all(claim.holds for _, claims in results for claim in claims),
        "stories": [_as_json(figures, claims) for figures, claims in results],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def _headline(figures: Figures) -> Text:
    story = figures.story
    text = Text()
    text.append(f"{story.name}: {story.title}\n", style="bold")
    text.append(
        f"{len(story.arrivals):,} runs, {figures.tokens:,} tokens, {story.slots} slots of {story.tokens_per_s:,} "
        f"tokens/s.\nTime is compressed: one second here is {story.compression} seconds of the story."
    )
    return text


def _table(figures: Figures) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("\ntenant", no_wrap=True)
    table.add_column("\nplan, weight", no_wrap=True)
    table.add_column("\nruns", justify="right")
    table.add_column("stated\nshare", justify="right")
    table.add_column("observed\nshare", justify="right")
    for title in ("first wait\nhere", "\nFIFO", "p50 wait\nhere", "\nFIFO", "p95 wait\nhere", "\nFIFO", "p95\nratio"):
        table.add_column(title, justify="right", no_wrap=True)
    marks = _marks(figures)
    for tenant, here in figures.waits.items():
        table.add_row(*_row(figures, tenant, marks[tenant], here), style=_STYLES[marks[tenant]])
    return table


def _marks(figures: Figures) -> dict[str, str]:
    """Mark whose shares and whose waits are judged."""
    marks = dict.fromkeys(figures.waits, "")
    marks |= dict.fromkeys(judged_tenants(figures), "+")
    return marks | dict.fromkeys(figures.contest.tenants if figures.contest else (), "*")


def _row(figures: Figures, tenant: str, mark: str, here: Waits) -> list[str]:
    fifo, rules = figures.fifo_waits[tenant], figures.story.policy.rules_for(tenant)
    share = figures.shares.get(tenant)
    total = sum(each.observed for each in figures.shares.values())
    pairs = ((here.first, fifo.first), (here.p50, fifo.p50), (here.p95, fifo.p95))
    return [
        tenant + mark,
        f"{rules.plan} {rules.weight}" if rules.plan else str(rules.weight),
        str(here.runs),
        f"{100 * share.stated / total:.1f} %" if share else "",
        f"{100 * share.observed / total:.1f} %" if share else "",
        *(_seconds(wait_ms) for pair in pairs for wait_ms in pair),
        f"{here.p95 / fifo.p95:.2f}" if fifo.p95 else "",
    ]


def _notes(figures: Figures) -> Padding:
    lines = []
    if figures.contest is not None:
        begin, end = figures.contest.interval
        lines.append(
            f"* backlogged all the time from {begin / 1_000:.1f} s to {end / 1_000:.1f} s. Shares are of the tokens "
            "handed out in that time; the stated ones are max-min by weight: whoever asked for less than its part gets "
            "what it asked for."
        )
    lines.append(
        "+ small: asks for at most half of an equal part of all tokens, and FIFO keeps it waiting (p95) for a minute "
        "of the story or more."
    )
    lines.append(
        "Waits go from the request to the start of its run, in seconds as they passed. Here: as it ran, read from the "
        "topics. FIFO: simulated from the same arrivals, costs, durations and slots, without any delay of its own."
    )
    return Padding(Text("\n".join(lines), style="dim"), (1, 0))


def _verdicts(claims: list[Claim]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column()
    for claim in claims:
        answer = Text("yes", style="green") if claim.holds else Text("NO", style="bold red")
        table.add_row(answer, f"{claim.text}\n[dim]{claim.evidence}[/dim]")
    return table


def _seconds(ms: int) -> str:
    return f"{ms / 1_000:.2f}"


def _as_json(figures: Figures, claims: list[Claim]) -> dict[str, Any]:
    story = figures.story
    return {
        "name": story.name,
        "title": story.title,
        "runs": len(story.arrivals),
        "tokens": figures.tokens,
        "slots": story.slots,
        "tokens_per_s_and_slot": story.tokens_per_s,
        "compression": story.compression,
        "measured": {
            "fairstream": "as it ran, from the topics",
            "fifo": "simulated: same arrivals, costs, durations and slots",
        },
        "makespan_ms": {"fairstream": figures.makespan_ms, "fifo": figures.fifo_makespan_ms},
        "steps": figures.steps,
        "contest": figures.contest
        and {
            "from_ms": figures.contest.interval.from_ms,
            "until_ms": figures.contest.interval.until_ms,
            "tenants": figures.contest.tenants,
        },
        "jain_index": float(figures.jain),
        "gaps": [
            {
                "tenants": [gap.first, gap.second],
                "observed_tokens_per_weight": float(gap.observed),
                "bound_tokens_per_weight": float(gap.bound),
            }
            for gap in figures.gaps
        ],
        "tenants": [_tenant_json(figures, tenant) for tenant in figures.waits],
        "claims": [claim._asdict() for claim in claims],
    }


def _tenant_json(figures: Figures, tenant: str) -> dict[str, Any]:
    rules = figures.story.policy.rules_for(tenant)
    return {
        "tenant": tenant,
        "plan": rules.plan,
        "weight": rules.weight,
        "small": tenant in figures.story.small,
        "share_tokens": _share_json(figures.shares.get(tenant)),
        "fifo_share_tokens": _share_json(figures.fifo_shares.get(tenant)),
        "waits_ms": {
            "fairstream": figures.waits[tenant]._asdict(),
            "fifo": figures.fifo_waits[tenant]._asdict(),
        },
        "tokens": asdict(figures.ledgers[tenant]),
    }


def _share_json(share: Share | None) -> dict[str, Any] | None:
    return share and {"asked": share.asked, "stated": share.stated, "observed": share.observed}
