"""The tables of `fairstream audit verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from streams.audit.verify import Problem
from streams.cli.tables import plain_table
from streams.errors import visible

if TYPE_CHECKING:
    from rich.table import Table

    from streams.audit.verify import Report
    from streams.audit.verify.intervals import Share

_SHARES: Final = 40  # tenants: those that have got the most


def tables(report: Report) -> Group:
    """Return what was found, what was looked at, the shares of the tenants and the widest gaps."""
    return Group(_problems(report), "", figures(report)) if report.problems else figures(report)


def figures(report: Report) -> Group:
    """Return the same without what was found, which has sentences."""
    parts = [_looked_at(report)]
    parts += [_shares(report)] if report.shares else []
    parts += [_gaps(report)] if report.widest else []
    spaced = [item for part in parts for item in (part, "")]
    return Group(*spaced)


def _problems(report: Report) -> Table:
    table = plain_table("problems", "check", "shard", "step")
    table.add_column("where")
    table.add_column("what is wrong")
    for each in report.problems:
        shard, step = ("" if number is None else f"{number:,}" for number in (each.shard, each.step))
        table.add_row(each.check, shard, step, _where(each), Text(visible(each.sentence)))
    return table


def _where(problem: Problem) -> str:
    partition = problem.shard if problem.partition is None else problem.partition
    if problem.offset is None:
        return problem.topic
    return f"{problem.topic} {partition}:{problem.offset}"


def _looked_at(report: Report) -> Table:
    table = plain_table("looked at", "what", "number")
    for name, number in report.looked_at.items():
        table.add_row(name, f"{number:,}")
    return table


def _shares(report: Report) -> Table:
    whole: dict[str, int] = {}
    for each in report.shares:
        whole[each.class_] = whole.get(each.class_, 0) + each.observed
    largest = sorted(report.shares, key=lambda each: (-each.observed, each.class_, each.tenant))[:_SHARES]
    more = f"; the {_SHARES} largest of {len(report.shares):,}" if len(report.shares) > _SHARES else ""
    table = plain_table(
        f"shares (tokens at true cost{more})",
        *("tenant", "class", "weight", "observed", "share", "stated", "contended", "off by", "allowed"),
    )
    for each in largest:
        table.add_row(*_share(each, whole[each.class_]))
    return table


def _share(share: Share, whole: int) -> tuple[str, ...]:
    part = [f"{tokens / whole:.1%}" if whole else "-" for tokens in (share.observed, share.stated)]
    held = (f"{share.deviation:+,}", f"{share.allowed:,}") if share.contended else ("-", "-")
    names = visible(share.tenant), visible(share.class_)
    return (*names, f"{share.weight:,}", f"{share.observed:,}", *part, f"{share.contended:,}", *held)


def _gaps(report: Report) -> Table:
    table = plain_table(
        "nearest to its bound (tokens per weight)", "class", "shard", "step", "ahead", "behind", "gap", "bound"
    )
    for shard, pair in report.widest:
        numbers = f"{pair.gap:,}", f"{pair.bound:,}"
        table.add_row(visible(pair.class_), str(shard), f"{pair.step:,}", pair.ahead, pair.behind, *numbers)
    return table
