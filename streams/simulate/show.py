"""A comparison for people: tables of at most 100 columns. All times are the story's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streams.errors import visible
from streams.simulate.bound import Gap
from streams.simulate.comparison import MEASURED, Comparison, Outcome
from streams.simulate.contestants import OURS
from streams.simulate.report import by_weight_alone
from streams.simulate.story import Story
from streams.simulate.waits import Waits

WIDTH: Final = 100
_NAMED: Final = 5  # tenants, in a sentence
SHOWN: Final = 30  # tenants; of more, those that ask for most

_Cell = Callable[[Outcome], str]


def show(comparison: Comparison, console: Console) -> None:
    """Print the story, who got what, what that comes to, and whether ours kept its bound."""
    console.print(_headline(comparison))
    console.print(_tenants(comparison))
    console.print(_remarks(comparison))
    console.print(_figures(comparison))
    console.print(Padding(_verdict(comparison), (1, 0, 0, 0)))


def console_of(width: int = WIDTH) -> Console:
    """Return a console that is as wide as the terminal, but no wider than the tables need; elsewhere just that."""
    console = Console()
    return Console(width=min(width, console.width) if console.is_terminal else width)


def _headline(comparison: Comparison) -> Text:
    story = comparison.story
    speed = story.tokens_per_s / story.compression
    text = Text(f"{visible(story.name)}: {story.title}\n", style="bold")
    text.append(
        f"{len(story.arrivals):,} runs, {sum(comparison.asked.values()):,} tokens; {story.slots} slots of "
        f"{speed:,.4g} tokens/s for {_time(story, story.until_ms)}"
        f"{f', {story.shards} shards' if story.shards > 1 else ''}.\n",
        style="not bold",
    )
    return text


def _tenants(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("\ntenant", no_wrap=True, max_width=14, overflow="ellipsis")
    for title in ("\nweight", "\nruns", "stated\nshare"):
        table.add_column(title, justify="right", no_wrap=True)
    for outcome in comparison.outcomes:
        table.add_column(f"{outcome.scheduler}\nshare", justify="right", no_wrap=True)
        table.add_column("p95\nwait, s", justify="right", no_wrap=True)
    runs: dict[str, int] = dict.fromkeys(comparison.asked, 0)
    for arrival in comparison.story.arrivals:
        runs[arrival.tenant] += 1
    for tenant in shown_tenants(comparison):
        table.add_row(
            visible(tenant),
            str(comparison.weights[tenant]),
            f"{runs[tenant]:,}",
            _share(tenant, {name: own[-1] for name, own in comparison.ideal.items()}),
            *(cell for outcome in comparison.outcomes for cell in _tenant_cells(comparison, outcome, tenant)),
        )
    return table


def shown_tenants(comparison: Comparison) -> list[str]:
    """Return who stands in the table: in the order of their first arrivals."""
    most = sorted(comparison.asked, key=lambda tenant: (-comparison.asked[tenant], tenant))[:SHOWN]
    return [tenant for tenant in comparison.asked if tenant in set(most)]


def _tenant_cells(comparison: Comparison, outcome: Outcome, tenant: str) -> tuple[str, str]:
    waits = outcome.waits.get(tenant)
    share = _share(tenant, {name: own[-1] for name, own in outcome.worked.items()})
    return share, _p95(comparison.story, waits)


def _share(tenant: str, tokens: dict[str, int]) -> str:
    total = sum(tokens.values())
    return f"{100 * tokens[tenant] / total:.1f} %" if total else ""


def _remarks(comparison: Comparison) -> Padding:
    lines = []
    hidden = len(comparison.asked) - SHOWN
    if hidden > 0:
        lines.append(f"{hidden:,} tenants that ask for less are not shown; --json has them all.")
    lines.append(
        "Shares are of the tokens worked off by the end; the stated ones are the ideal's, which divides the pool by "
        "weight at every instant, max-min. Waits go from the request to the start of its run."
    )
    held = [name for name in comparison.asked if not by_weight_alone(comparison.story.policy.rules_for(name))]
    if held:
        named = ", ".join(visible(name) for name in held[:_NAMED]) + (", ..." if len(held) > _NAMED else "")
        lines.append(
            f"The ideal knows weights alone: not that {named} may be held back by a cap, a group or a pause. So the "
            "distances of ours from it, and Jain's index, are in part what the policy wants."
        )
    if comparison.story.compression > 1:
        lines.append(f"Played {comparison.story.compression} times as fast; times are the story's own.")
    return Padding(Text("\n".join(lines), style="dim"), (1, 0))


def _figures(comparison: Comparison) -> Table:
    story = comparison.story
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for outcome in comparison.outcomes:
        table.add_column(outcome.scheduler, justify="right", no_wrap=True)
    rows: list[tuple[str, _Cell]] = [
        ("Jain's index of share over stated share", lambda each: f"{float(each.jain):.4f}"),
        ("furthest from the ideal, tokens", lambda each: f"{each.distance.tokens:,}"),
        ("widest gap of two, tokens per weight", lambda each: _gap(each.widest)),
        ("p50 wait of all runs, s", lambda each: _p50(story, each.all_waits)),
        ("p95 wait of all runs, s", lambda each: _p95(story, each.all_waits)),
        ("p95 wait of small tenants, s", lambda each: _p95(story, each.small_waits)),
        ("slots used until the end", lambda each: f"{100 * float(each.used):.1f} %"),
        ("until the last run has ended", lambda each: _time(story, each.makespan_ms)),
        ("tokens/s in that time", lambda each: f"{each.throughput / story.compression:,.0f}"),
    ]
    if any(outcome.lost_attempts for outcome in comparison.outcomes):
        rows.append(("attempts lost and tried again", lambda each: f"{each.lost_attempts:,}"))
    if any(outcome.refused for outcome in comparison.outcomes):
        rows.append(("runs refused", lambda each: f"{sum(each.refused.values()):,}"))
    for title, cell in rows:
        table.add_row(title, *(cell(outcome) for outcome in comparison.outcomes))
    return table


def _verdict(comparison: Comparison) -> Text:
    ours = next((outcome for outcome in comparison.outcomes if outcome.scheduler == OURS), None)
    if ours is None:
        return Text("ours was not asked for: there is no bound to keep", style="dim")
    if ours.gap is None:
        return Text("no two tenants were ever backlogged together: there is no bound to keep", style="dim")
    gap = ours.gap
    text = Text("yes ", style="green") if gap.holds else Text("NO  ", style="bold red")
    text.append("the gap between any two backlogged tenants stays within its bound\n", style="default")
    text.append(
        f"    the nearest: {visible(gap.first)} and {visible(gap.second)}, {round(gap.observed):,} of "
        f"{round(gap.bound):,} tokens per weight",
        style="dim",
    )
    if len(comparison.asked) > MEASURED:
        text.append(f"; of the {MEASURED} tenants that ask for most", style="dim")
    return text


def _gap(gap: Gap | None) -> str:
    return f"{round(gap.observed):,}" if gap else "-"


def _p50(story: Story, waits: Waits | None) -> str:
    return _seconds(story, waits.p50) if waits else "-"


def _p95(story: Story, waits: Waits | None) -> str:
    return _seconds(story, waits.p95) if waits else "-"


def _seconds(story: Story, ms: int) -> str:
    return f"{ms * story.compression / 1_000:,.1f}"


def _time(story: Story, ms: int) -> str:
    minutes, seconds = divmod(ms * story.compression // 1_000, 60)
    return f"{minutes:,}:{seconds:02} min"
