"""One owner under many names: workflows, classes, tenant ids. What it gains, and what a group takes from it.

Four ordinary tenants always have work. The fifth owner does what it can think of; a fifth of all tokens is fair.
Tokens count at their true cost, over the second half of a history: what a name owes at first is within the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Literal

import pytest

from streams.core.effects import Dispatch
from streams.core.inputs import SUCCEEDED, Input, Submit
from streams.core.invariants import check
from streams.core.policy import Memory, Policy, PriorityClass, TenantRules
from tests.builders import make_policy, make_report, make_submit
from tests.drivers import Driver

OTHERS = ("o1", "o2", "o3", "o4")
NAMES = tuple(f"s{number:02}" for number in range(20))
QUANTUM = 100
DISPATCHES = 4_000
FAIR = Fraction(1, 5)


@dataclass
class World:
    """A shard, what waits in it, and what each run really costs."""

    driver: Driver
    draw: Random
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)  # (tenant, class)
    flying: list[Dispatch] = field(default_factory=list)
    costs: dict[str, int] = field(default_factory=dict)

    def request(
        self, tenant: str, *, class_: str = "default", workflow: str = "flow", says: float = 1, cost: int | None = None
    ) -> Submit:
        """File a run that costs at most a quantum; its producer says `says` times as much."""
        run_id = f"r{len(self.costs)}"
        if cost is None:
            cost = self.draw.randint(50, QUANTUM)
        self.costs[run_id] = cost
        self.waiting[tenant, class_] += 1
        position = self.driver.position()
        estimate = max(1, int(cost * says))
        return make_submit(tenant, run_id, position=position, cost=estimate, class_=class_, workflow=workflow)


Owner = Callable[[World], Iterator[Submit]]


def backlogged(names: Sequence[str], classes: Sequence[str] = ("default",), workflows: int = 1) -> Owner:
    """Keep every name's queue filled in every class."""

    def act(world: World) -> Iterator[Submit]:
        for class_ in classes:
            for name in names:
                while world.waiting[name, class_] < 3:
                    workflow = f"flow{len(world.costs) % workflows}"
                    yield world.request(name, class_=class_, workflow=workflow)

    return act


def one_at_a_time(names: Sequence[str]) -> Owner:
    """Every name waits for the end of its run before it files the next."""

    def act(world: World) -> Iterator[Submit]:
        busy = {dispatch.tenant for dispatch in world.flying}
        for name in names:
            if not world.waiting[name, "default"] and name not in busy:
                yield world.request(name)

    return act


def by_turns(names: Sequence[str], *, runs: int = 1, says: float = 1) -> Owner:
    """Only one name has work at a time: always the one whose place in the ring comes next."""
    turn = 0

    def act(world: World) -> Iterator[Submit]:
        nonlocal turn
        if not any(world.waiting[name, "default"] for name in names):
            name = names[turn % len(names)]
            turn += 1
            for _ in range(runs):
                yield world.request(name, says=says)

    return act


def fresh_names() -> Owner:
    """A name that was never heard of for each run, one at a time; the run costs all that a first visit gives."""
    used = 0

    def act(world: World) -> Iterator[Submit]:
        nonlocal used
        name = f"fresh{used}"
        if not world.waiting[name, "default"] and all(name != dispatch.tenant for dispatch in world.flying):
            used += 1
            yield world.request(f"fresh{used}", cost=QUANTUM)

    return act


def share(policy: Policy, owner: Owner, others: Owner | None = None) -> Fraction:
    """Return the part of all tokens that goes to who is not one of the others."""
    world = World(Driver(policy, doubted=False), Random(1))
    others = others or backlogged(OTHERS)
    # All take their places first, in an order that puts five names between any two of the others.
    places = [name for index, other in enumerate(OTHERS) for name in (other, *NAMES[5 * index : 5 * index + 5])]
    inputs: list[Input] = [world.request(name) for name in places]
    served: list[tuple[str, int]] = []
    while len(served) < DISPATCHES:
        for dispatch in world.driver.step(*inputs).dispatches:
            world.waiting[dispatch.tenant, dispatch.class_] -= 1
            world.flying.append(dispatch)
            served.append((dispatch.tenant, world.costs[dispatch.run_id]))
        ended = world.flying.pop(0)
        inputs = [make_report(ended, SUCCEEDED, world.costs[ended.run_id]), *owner(world), *others(world)]
    check(world.driver.shard)
    half = served[DISPATCHES // 2 :]
    return Fraction(sum(cost for name, cost in half if name not in OTHERS), sum(cost for _, cost in half))


def policy_of(*, group: bool, weight: int = 1, runs: int = 1) -> Policy:
    """All names in one group of that weight, or in none."""
    rules = {name: TenantRules(group="owner" if group else None) for name in NAMES}
    return replace(make_policy(quantum=QUANTUM, runs=runs, rules=rules), groups={"owner": weight})


def test_many_workflows_of_one_tenant_are_one_tenant() -> None:
    policy = make_policy(quantum=QUANTUM, runs=1)
    assert abs(share(policy, backlogged(NAMES[:1], workflows=20)) - FAIR) < 0.01


@pytest.mark.parametrize("mode", ["strict", "shares"])
def test_a_tenant_in_many_classes_has_one_share_in_each(mode: Literal["strict", "shares"]) -> None:
    """Where the others have work too. A class that nobody else uses is all his, whatever it was given."""
    names = ("c1", "c2", "c3")
    classes = tuple(PriorityClass(name=name) for name in ("default", *names))
    policy = replace(make_policy(quantum=QUANTUM, runs=1), classes=classes, between_classes=mode)
    owner = backlogged(NAMES[:1], classes=("default", *names))
    assert abs(share(policy, owner, backlogged(OTHERS, classes=("default", *names))) - FAIR) < 0.01


def test_twenty_tenant_ids_are_twenty_tenants_without_a_group() -> None:
    assert abs(share(policy_of(group=False), backlogged(NAMES)) - Fraction(20, 24)) < 0.01


@pytest.mark.parametrize(("weight", "fair"), [(1, Fraction(1, 5)), (2, Fraction(2, 6))])
@pytest.mark.parametrize("runs", [1, 4])
def test_twenty_tenant_ids_in_a_group_have_its_weight(weight: int, fair: Fraction, runs: int) -> None:
    assert abs(share(policy_of(group=True, weight=weight, runs=runs), backlogged(NAMES)) - fair) < 0.01


@pytest.mark.parametrize(("group", "at_least", "at_most"), [(False, 0.7, 1), (True, 0.15, 0.21)])
def test_ids_that_file_one_run_at_a_time(group: bool, at_least: float, at_most: float) -> None:
    assert at_least <= share(policy_of(group=group), one_at_a_time(NAMES)) <= at_most


@pytest.mark.parametrize(("group", "at_least", "at_most"), [(False, 0.7, 1), (True, 0.15, 0.21)])
def test_ids_that_take_turns_within_a_round(group: bool, at_least: float, at_most: float) -> None:
    """Each is alone in its group while the cursor comes past it: a share of all of the group's weight each time."""
    assert at_least <= share(policy_of(group=group), by_turns(NAMES)) <= at_most


@pytest.mark.parametrize(("group", "at_least", "at_most"), [(False, 0.7, 1), (True, 0.15, 0.21)])
def test_ids_that_take_turns_running_up_debt(group: bool, at_least: float, at_most: float) -> None:
    """Each files eight runs that look as if they cost nothing, and is gone when the bills come in."""
    owner = by_turns(NAMES, runs=8, says=0.02)
    assert at_least <= share(policy_of(group=group, runs=8), owner) <= at_most


@pytest.mark.parametrize("flows", [Memory().flows, 30])
def test_fresh_names_one_at_a_time(flows: int) -> None:
    """Each is last in the ring: could it join the round under way, that would never end, and the others never go.

    With 30 flows each name is forgotten for one that comes after it.
    """
    policy = replace(policy_of(group=False), memory=Memory(flows=flows))
    assert abs(share(policy, fresh_names()) - FAIR) < 0.01
