"""Rates measured in turn, round after round, so that what slows the machine down for a while slows all of them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A rate over some rounds, per second, and its ratio to the first rate of its table."""

    name: str
    median: int
    least: int
    most: int
    ratio: float  # median over the rounds of this rate / the first rate in the same round


def interleaved(measures: Mapping[str, Callable[[], float]], rounds: int) -> list[Figure]:
    """Take each rate once a round, in the order given. Each call measures for itself and returns a rate per second."""
    taken = [[measure() for measure in measures.values()] for _ in range(rounds)]
    return [
        Figure(
            name=name,
            median=round(median(rates)),
            least=round(min(rates)),
            most=round(max(rates)),
            ratio=median(rate / each[0] for rate, each in zip(rates, taken, strict=True)),
        )
        for name, rates in zip(measures, zip(*taken, strict=True), strict=True)
    ]
