"""Classes that always have work, for a long time: what each gets, and how far it ever is from its share.

Served tokens count at their true cost, from the dispatch on. Both bounds are those of `streams.core.classes`, for any
interval: the spread of a difference over a history is its largest growth over any interval in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from streams.core.effects import Dispatch
from streams.core.inputs import SUCCEEDED, SetPolicy
from streams.core.invariants import check
from streams.core.policy import Policy, PriorityClass
from streams.core.shard import Shard
from tests.builders import make_policy, make_report, make_submit

STEPS = 2_000
WAITING = 8  # runs of each tenant that wait at any time
TENANTS = ("a", "b")

Guess = Callable[[int, Random], int]


def right(cost: int, _draw: Random) -> int:
    return cost


def a_quarter(cost: int, _draw: Random) -> int:
    return max(1, cost // 4)


def four_times(cost: int, _draw: Random) -> int:
    return cost * 4


def swinging(cost: int, draw: Random) -> int:
    return max(1, draw.choice((cost // 10, cost * 10)))


@dataclass(frozen=True)
class Traffic:
    """What a class sends: runs of about `cost` tokens, within a half of it."""

    cost: int = 100
    guess: Guess = right


@dataclass
class Lane:
    """What a class got. `under` and `over`: the most by which its estimates in flight were wrong, summed up."""

    served: list[int] = field(default_factory=list)  # after each dispatch of any class
    dearest: int = 0  # estimate
    under: int = 0
    over: int = 0

    @property
    def wrong(self) -> int:
        return self.under + self.over


def play(policy: Policy, traffic: Mapping[str, Traffic], seed: int) -> dict[str, Lane]:
    """Keep all classes backlogged; runs in flight end in any order."""
    draw, shard, lanes = Random(seed), Shard(0, 1), {name: Lane() for name in traffic}
    costs: dict[str, int] = {}
    total = dict.fromkeys(traffic, 0)
    flying: list[Dispatch] = []

    def submit(class_: str, tenant: str) -> None:
        each = traffic[class_]
        cost = draw.randint(each.cost // 2, each.cost * 3 // 2)
        run_id = f"r{len(costs)}"
        costs[run_id] = cost
        guess = each.guess(cost, draw)
        inputs.append(make_submit(tenant, run_id, position=len(costs), cost=guess, class_=class_))

    inputs: list[object] = [SetPolicy(0, policy)]
    for class_ in traffic:
        for tenant in TENANTS * WAITING:
            submit(class_, tenant)
    for step in range(STEPS):
        effects = shard.step(inputs, 1_000 + step)  # type: ignore[arg-type]
        inputs = []
        for dispatch in effects.dispatches:
            lane = lanes[dispatch.class_]
            flying.append(dispatch)
            total[dispatch.class_] += costs[dispatch.run_id]
            lane.dearest = max(lane.dearest, dispatch.estimate)
            for name, each in lanes.items():
                each.served.append(total[name])
            errors = [costs[each.run_id] - each.estimate for each in flying if each.class_ == dispatch.class_]
            lane.under = max(lane.under, sum(error for error in errors if error > 0))
            lane.over = max(lane.over, -sum(error for error in errors if error < 0))
            submit(dispatch.class_, dispatch.tenant)
        for _ in range(draw.randint(1, 3)):
            ended = flying.pop(draw.randrange(len(flying)))
            inputs.append(make_report(ended, SUCCEEDED, costs[ended.run_id]))
            if not flying:
                break
        if step % 500 == 0:
            check(shard)
    return lanes


def by_weight(**weights: int) -> Policy:
    classes = tuple(PriorityClass(name=name, weight=weight) for name, weight in weights.items())
    return replace(make_policy(quantum=100, runs=6), between_classes="shares", classes=classes)


def in_order(**minimums: int) -> Policy:
    classes = tuple(PriorityClass(name=name, min_share=percent) for name, percent in minimums.items())
    return replace(make_policy(quantum=100, runs=6), classes=classes)


def growth(values: list[int]) -> int:
    """Return the largest growth over any interval."""
    lowest, most = values[0], 0
    for value in values:
        lowest = min(lowest, value)
        most = max(most, value - lowest)
    return most


def distance(lanes: Mapping[str, Lane], weights: Mapping[str, int]) -> Fraction:
    """Return the largest distance between two classes over any interval, as a part of its bound."""
    worst = Fraction(0)
    for (one, first), (two, second) in combinations(weights.items(), 2):
        pairs = zip(lanes[one].served, lanes[two].served, strict=True)
        differences = [mine * second - theirs * first for mine, theirs in pairs]
        found = Fraction(max(differences) - min(differences), first * second)
        bound = Fraction(lanes[one].dearest + lanes[one].wrong, first)
        bound += Fraction(lanes[two].dearest + lanes[two].wrong, second)
        worst = max(worst, found / bound)
    return worst


def share(lanes: Mapping[str, Lane], name: str) -> float:
    return lanes[name].served[-1] / sum(lane.served[-1] for lane in lanes.values())


WEIGHTS = ({"high": 3, "low": 1}, {"high": 50, "mid": 30, "low": 20}, {"high": 1, "mid": 1, "low": 40})
GUESSES = (right, a_quarter, four_times, swinging)


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_classes_get_their_shares_and_stay_within_the_bound(weights: dict[str, int], guess: Guess) -> None:
    traffic = {name: Traffic() for name in weights} | {"low": Traffic(300, guess)}
    lanes = play(by_weight(**weights), traffic, seed=1)
    assert Fraction(1, 20) < distance(lanes, weights) <= 1
    for name, weight in weights.items():
        assert share(lanes, name) == pytest.approx(weight / sum(weights.values()), rel=0.02)


def test_a_scheduler_that_goes_in_order_leaves_the_bound() -> None:
    """The control: the bound can be missed."""
    lanes = play(in_order(high=0, low=0), {"high": Traffic(), "low": Traffic()}, seed=1)
    assert distance(lanes, {"high": 3, "low": 1}) > 10


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("low_cost", [30, 1_000])
def test_a_minimum_is_kept_under_a_flood_from_above(guess: Guess, low_cost: int) -> None:
    minimums = {"high": 0, "mid": 25, "low": 10}
    traffic = {"high": Traffic(), "mid": Traffic(), "low": Traffic(low_cost, guess)}
    lanes = play(in_order(**minimums), traffic, seed=1)
    everything = [sum(served) for served in zip(*(lane.served for lane in lanes.values()), strict=True)]
    for name, before in (("mid", ()), ("low", ("mid",))):
        behind = [
            minimums[name] * total - 100 * mine for total, mine in zip(everything, lanes[name].served, strict=True)
        ]
        another = max(lane.dearest for other, lane in lanes.items() if other != name)
        bound = lanes[name].dearest + another + sum(lanes[other].dearest for other in before)
        bound += sum(lane.wrong for lane in lanes.values())
        assert growth(behind) <= 100 * bound
        assert growth([-lag for lag in behind]) <= 100 * bound  # nor does it get more: those above want the rest


def test_without_a_minimum_the_class_below_starves() -> None:
    lanes = play(in_order(high=0, low=0), {"high": Traffic(), "low": Traffic()}, seed=1)
    assert share(lanes, "low") == 0
