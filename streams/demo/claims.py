"""What the demo claims, each with the figures it rests on. A claim that fails makes the demo fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

from streams.demo.measure import Figures

WAIT_FACTOR: Final = 5  # a small tenant's p95 wait is at most this part of FIFO's
MARGIN: Final = Fraction(5, 100)  # for throughput and shares

# Whom FIFO makes wait for less than this, in the story's own time, has nothing to win by any scheduler.
KEPT_WAITING_MS: Final = 60_000


class Claim(NamedTuple):
    """A sentence and whether it is true of this run."""

    name: str  # for programs
    text: str
    holds: bool
    evidence: str


def judge(figures: Figures) -> list[Claim]:
    """Return all claims about a story."""
    return [
        _waits(figures),
        _throughput(figures),
        _shares(figures),
        _bound(figures),
        _conservation(figures),
        _once(figures),
    ]


def judged_tenants(figures: Figures) -> list[str]:
    """Return the small tenants that FIFO keeps waiting: those whose waits are judged."""
    patience = KEPT_WAITING_MS // figures.story.compression
    return [tenant for tenant in figures.story.small if figures.fifo_waits[tenant].p95 >= patience]


def _waits(figures: Figures) -> Claim:
    judged = judged_tenants(figures)
    ratios = {name: Fraction(figures.waits[name].p95, figures.fifo_waits[name].p95) for name in judged}
    worst = max(ratios, key=lambda name: (ratios[name], name), default=None)
    left = len(figures.story.small) - len(judged)
    evidence = f"{len(judged)} tenants, the worst {worst} at {float(ratios[worst]):.3f}" if worst else "nobody to judge"
    if left:
        evidence += f"; {left} more as small are not kept waiting by FIFO"
    return Claim(
        "waits",
        f"every small tenant's p95 wait is at most 1/{WAIT_FACTOR} of FIFO's",
        bool(ratios) and max(ratios.values()) * WAIT_FACTOR <= 1,
        evidence,
    )


def _throughput(figures: Figures) -> Claim:
    # The same tokens in another time: the ratio of rates is that of times, upside down.
    ratio = Fraction(figures.fifo_makespan_ms, figures.makespan_ms)
    here, fifo = (_rate(figures.tokens, span_ms) for span_ms in (figures.makespan_ms, figures.fifo_makespan_ms))
    return Claim(
        "throughput",
        f"total throughput is within {_percent(MARGIN)} of FIFO's",
        abs(ratio - 1) <= MARGIN,
        f"{here} against {fifo} tokens/s, {_signed(ratio - 1)}",
    )


def _shares(figures: Figures) -> Claim:
    text = f"those backlogged all the time got their stated share within {_percent(MARGIN)}"
    if figures.contest is None:
        return Claim("shares", text, holds=False, evidence="no two tenants were ever backlogged together")
    errors = {
        name: Fraction(s.observed, s.stated) - 1 for name in figures.contest.tenants for s in [figures.shares[name]]
    }
    evidence = ", ".join(f"{name} {_signed(error)}" for name, error in errors.items())
    seconds = figures.contest.interval.length_ms / 1_000
    return Claim("shares", text, all(abs(e) <= MARGIN for e in errors.values()), f"{evidence}, over {seconds:.1f} s")


def _bound(figures: Figures) -> Claim:
    widest = max(figures.gaps, key=lambda gap: gap.observed / gap.bound, default=None)
    return Claim(
        "bound",
        "the gap between backlogged tenants is within its bound",
        widest is not None and all(gap.holds for gap in figures.gaps),
        f"{widest.first} and {widest.second}: {round(widest.observed):,} of {round(widest.bound):,} tokens per weight"
        if widest
        else "no two tenants were ever backlogged together",
    )


def _conservation(figures: Figures) -> Claim:
    wrong = [name for name, ledger in figures.ledgers.items() if not ledger.balanced]
    return Claim(
        "conservation",
        "what was charged is what was spent, to the token",
        not wrong,
        f"wrong for {', '.join(wrong)}" if wrong else f"{figures.tokens:,} tokens, counted in five ways",
    )


def _once(figures: Figures) -> Claim:
    runs = len(figures.story.arrivals)
    return Claim(
        "once",
        "every run was dispatched once and the sequence has no gap",
        figures.attempts == runs and figures.gapless,
        f"{figures.attempts:,} dispatches for {runs:,} runs, in {figures.steps:,} transactions",
    )


def _percent(fraction: Fraction) -> str:
    return f"{float(fraction) * 100:g} %"


def _signed(fraction: Fraction) -> str:
    return f"{float(fraction) * 100:+.1f} %"


def _rate(tokens: int, span_ms: int) -> str:
    return f"{tokens * 1_000 // span_ms:,}"
