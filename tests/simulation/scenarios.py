"""Who competes, how, and how far from the ideal we may be: one scenario each, as data.

The pool has 8 slots that work off one token per ms each. Runs cost about 100 tokens. A scenario lasts 20 seconds:
160,000 tokens in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from streams.core.policy import Estimates, EstimateSource
from streams.simulate.workload import Arrival, in_order

SLOTS = 8
LASTS_MS = 20_000
QUANTUM = 200

# Draws what the n-th run costs, and what its producer says it will.
Costs = Callable[[Random, int], tuple[int, int | None]]


@dataclass(frozen=True)
class Traffic:
    """What one tenant sends: `runs` at random in each of the intervals."""

    runs: int
    intervals: tuple[tuple[int, int], ...]
    costs: Costs
    workflows: int | None = 1  # taken in turn; None: each run has a name that was never used before

    def workflow(self, number: int) -> str:
        """Return the name under which the n-th run is filed."""
        return f"new{number}" if self.workflows is None else f"flow{number % self.workflows}"


@dataclass(frozen=True)
class Scenario:
    """`margin`: the largest distance from the ideal, beyond the grain of whole runs, as a part of the stated share."""

    traffic: Mapping[str, Traffic]
    margin: float = 0.01
    weights: Mapping[str, int] = field(default_factory=dict)
    source: EstimateSource = "history"
    min_charge: int = 1
    reports_nothing: frozenset[str] = frozenset()  # tenants whose runs end with zero usage

    @property
    def estimates(self) -> Estimates:
        return Estimates(source=self.source, min_charge=self.min_charge)

    def weight(self, tenant: str) -> int:
        return self.weights.get(tenant, 1)

    def arrivals(self, seed: int) -> tuple[Arrival, ...]:
        arrived: list[Arrival] = []
        for tenant, traffic in self.traffic.items():
            draw = Random(f"{seed}/{tenant}")
            moments = (draw.randint(*interval) for interval in traffic.intervals for _ in range(traffic.runs))
            for number, at_ms in enumerate(sorted(moments)):
                tokens, hint = traffic.costs(draw, number)
                workflow = traffic.workflow(number)
                arrived.append(Arrival(at_ms, tenant, f"{tenant}{number}", workflow, tokens, max(1, tokens), hint))
        return in_order(arrived)


def about(tokens: int, hint: float | None = None) -> Costs:
    """Within a half of `tokens`; `hint` is the factor by which the producer's guess is off."""

    def draw(random: Random, _number: int) -> tuple[int, int | None]:
        cost = random.randint(tokens // 2, tokens * 3 // 2)
        return cost, None if hint is None else max(1, int(cost * hint))

    return draw


def heavy(random: Random, _number: int) -> tuple[int, int | None]:
    """Most runs are small; one in a hundred costs fifty times the median."""
    return min(2_000, int(40 * random.paretovariate(1.2))), None


def swinging(random: Random, number: int) -> tuple[int, int | None]:
    """A guess ten times too small, then ten times too large: a swing by a hundred."""
    cost = random.randint(50, 150)
    return cost, max(1, cost // 10) if number % 2 else cost * 10


def unsteady(random: Random, number: int) -> tuple[int, int | None]:
    """Cheap and a hundred times as dear by turns: the mean is wrong about every run."""
    return random.randint(8, 12) * (100 if number % 2 else 1), None


def trained(random: Random, number: int) -> tuple[int, int | None]:
    """Forty cheap runs, by which the estimate is made, then twenty that cost twenty times as much, and again."""
    return random.randint(15, 25) * (20 if number % 60 >= 40 else 1), None


ALL = ((0, LASTS_MS),)
AT_ONCE = ((0, 500),)


def every(period_ms: int, *, lasting_ms: int, from_ms: int = 0) -> tuple[tuple[int, int], ...]:
    return tuple((at, at + lasting_ms) for at in range(from_ms, LASTS_MS, period_ms))


def crowd(names: Iterable[str], traffic: Traffic) -> dict[str, Traffic]:
    return dict.fromkeys(names, traffic)


FEW = ("b", "c", "d")
MANY = tuple("bcdefghij")
# Enough to be backlogged from the first half second to the end, for one of four.
plenty = Traffic(500, AT_ONCE, about(100))
plenty_well_guessed = Traffic(500, AT_ONCE, about(100, hint=1))
# The same, spread over the whole time: what is filed later is guessed by what has ended.
steady = Traffic(700, ALL, about(100))

SCENARIOS: dict[str, Scenario] = {
    "equal tenants, unequal floods": Scenario({"a": Traffic(1_200, AT_ONCE, about(100)), **crowd(FEW, plenty)}),
    "weighted tenants": Scenario(crowd("abc", Traffic(1_100, AT_ONCE, about(100))), weights={"a": 1, "b": 2, "c": 5}),
    "a whale and small ones": Scenario(
        {"whale": Traffic(1_700, AT_ONCE, about(100)), **crowd(MANY, Traffic(60, ALL, about(100)))}
    ),
    "dear runs against cheap ones": Scenario(
        {"dear": Traffic(250, AT_ONCE, about(1_000)), "cheap": Traffic(9_000, AT_ONCE, about(10))}
    ),
    "bursts, on and off": Scenario(
        {
            "bursty": Traffic(60, every(4_000, lasting_ms=300), about(100)),
            **crowd(FEW, Traffic(700, AT_ONCE, about(100))),
        },
    ),
    "heavy tails": Scenario({"a": Traffic(1_500, AT_ONCE, heavy), **crowd(FEW, Traffic(500, AT_ONCE, heavy))}),
    "a liar who says a quarter": Scenario(
        {"liar": Traffic(1_200, AT_ONCE, about(100, hint=0.25)), **crowd(FEW, plenty_well_guessed)},
        source="hint",
    ),
    "a liar who says four times as much": Scenario(
        {"liar": Traffic(1_200, AT_ONCE, about(100, hint=4)), **crowd(FEW, plenty_well_guessed)},
        source="hint",
    ),
    "a liar who swings by a hundred": Scenario(
        {"liar": Traffic(1_200, AT_ONCE, swinging), **crowd(FEW, plenty_well_guessed)}, source="hint"
    ),
    "a liar who says a quarter where the larger guess counts": Scenario(
        {"liar": Traffic(1_200, AT_ONCE, about(100, hint=0.25)), **crowd(FEW, plenty)}, source="max"
    ),
    "a liar who says four times as much where the larger guess counts": Scenario(
        {"liar": Traffic(1_200, AT_ONCE, about(100, hint=4)), **crowd(FEW, plenty)}, source="max"
    ),
    "a liar with a new workflow for every run": Scenario(
        # More names than are remembered of a tenant, and runs four times as dear as an unknown one is taken for.
        {"liar": Traffic(600, ALL, about(400), workflows=None), **crowd(FEW, steady)}
    ),
    "dear runs under the names of cheap ones": Scenario(
        {
            "liar": Traffic(600, ALL, about(400), workflows=20),
            **crowd(FEW, Traffic(1_400, ALL, about(50), workflows=20)),
        }
    ),
    "a history trained on cheap runs": Scenario({"liar": Traffic(1_200, ALL, trained), **crowd(FEW, steady)}),
    "costs that swing by a hundred": Scenario({"liar": Traffic(400, ALL, unsteady), **crowd(FEW, steady)}),
    "bursts that look cheap": Scenario(
        # It asks for a half of all, in bursts of which each fits one visit by its estimates; a tenth is fair.
        {
            "cheat": Traffic(10, every(1_000, lasting_ms=10), about(400, hint=0.05)),
            **crowd(MANY, Traffic(190, AT_ONCE, about(100, hint=1))),
        },
        source="hint",
    ),
    "newcomers, one after the other": Scenario(
        {f"t{number}": Traffic(800, ((number * 3_000, number * 3_000 + 300),), about(100)) for number in range(5)},
    ),
    "who returns after a long silence": Scenario(
        {
            "returning": Traffic(150, ((0, 300), (13_000, 13_300)), about(100)),
            **crowd(FEW, Traffic(600, AT_ONCE, about(100))),
        },
    ),
    "a flood of runs that report no cost": Scenario(
        {"nothing": Traffic(8_000, AT_ONCE, lambda _random, _number: (20, 1)), **crowd(FEW, plenty_well_guessed)},
        source="hint",
        min_charge=20,  # what such a run holds its slot for
        reports_nothing=frozenset({"nothing"}),
    ),
    "one tenant under twenty workflows": Scenario(
        {"many": Traffic(1_200, AT_ONCE, about(100), workflows=20), **crowd(FEW, plenty)}
    ),
}
