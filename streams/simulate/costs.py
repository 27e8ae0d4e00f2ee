"""What runs cost, and what their producers say they will: draws from a seeded source."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Protocol


class Costs(Protocol):
    """What runs cost."""

    def draw(self, random: Random, number: int) -> int:
        """Return the tokens (> 0) of the n-th run of a tenant, from 0."""
        ...


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """Log-normal cost around a median, kept within `median / reach` and `median * reach`.

    So the dearest run costs at most `reach` squared times the cheapest. A `sigma` of 1 puts one run in six above
    2.7 medians. Where a draw falls outside it is drawn again: cutting would pile runs up at the ends.
    """

    median: int  # tokens
    reach: float = 7.0  # >= 1; 7 squared is about 50
    sigma: float = 1.0

    def draw(self, random: Random, number: int) -> int:
        del number
        while True:
            factor = random.lognormvariate(0.0, self.sigma)
            if 1 / self.reach <= factor <= self.reach:
                return max(1, round(self.median * factor))


@dataclass(frozen=True, slots=True)
class Around:
    """Evenly within a half of `tokens`."""

    tokens: int

    def draw(self, random: Random, number: int) -> int:
        del number
        return random.randint(self.tokens // 2, self.tokens * 3 // 2)


@dataclass(frozen=True, slots=True)
class Always:
    """Each the same."""

    tokens: int

    def draw(self, random: Random, number: int) -> int:
        del random, number
        return self.tokens


@dataclass(frozen=True, slots=True)
class PowerTail:
    """Pareto: most runs cost little more than `least`, one in a hundred fifty times as much; never above `most`."""

    least: int  # tokens
    most: int
    shape: float = 1.2

    def draw(self, random: Random, number: int) -> int:
        del number
        return min(self.most, int(self.least * random.paretovariate(self.shape)))


@dataclass(frozen=True, slots=True)
class InTurns:
    """So many runs of one cost, then so many of the next, and from the beginning: each within a fifth of it."""

    turns: tuple[tuple[int, int], ...]  # (runs, tokens)

    def draw(self, random: Random, number: int) -> int:
        left = number % sum(runs for runs, _ in self.turns)
        for runs, tokens in self.turns:
            if left < runs:
                return max(1, random.randint(tokens * 4 // 5, tokens * 6 // 5))
            left -= runs
        raise AssertionError("a remainder is smaller than what it is the remainder of")


@dataclass(frozen=True, slots=True)
class Guess:
    """What a producer says of its runs' costs: the truth times these factors, taken in turn."""

    factors: tuple[float, ...]

    def of(self, tokens: int, number: int) -> int:
        """Return the guess (> 0) about the n-th run, which will cost `tokens`."""
        return max(1, int(tokens * self.factors[number % len(self.factors)]))
