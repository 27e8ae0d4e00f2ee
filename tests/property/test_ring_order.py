"""The computed order is the swept order: the core against a sweep that walks every visit of every round."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.classes import UNIT
from streams.core.effects import Dispatch
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, SUCCEEDED, Input, SetPolicy
from streams.core.policy import Policy, PriorityClass, TenantRules
from streams.core.records import RingRecord, ShardRecord
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.drivers import Driver
from tests.property.naive_sweep import NaiveScheduler, Run, Served
from tests.strategies import CLASSES, GROUPS, TENANTS, costs, examples, order_policies

# How far the truth is from the estimate: eighths of it, and at least 1.
eighths = st.sampled_from((0, 1, 4, 8, 8, 9, 16, 64))
picks = st.integers(0, 1_000)
class_names = st.sampled_from((CLASSES[0], CLASSES[0], *CLASSES))

events = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(TENANTS), class_names, costs),
    st.tuples(st.just("submit"), st.sampled_from(TENANTS), class_names, costs),
    st.tuples(st.just("succeed"), picks, eighths),
    st.tuples(st.just("retry"), picks, eighths),
    st.tuples(st.just("return"), picks),
    st.tuples(st.just("heartbeat"), picks, eighths),
    st.tuples(st.just("cancel"), picks),
    st.tuples(st.just("policy"), picks),
)


@dataclass
class Both:
    """The shard and the sweep, told the same."""

    policies: list[Policy]
    driver: Driver = field(init=False)
    naive: NaiveScheduler = field(init=False)
    runs: list[Run] = field(default_factory=list)
    attempts: dict[str, Dispatch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.driver = Driver(self.policies[0])
        self.naive = NaiveScheduler(self.policies[0])

    def tell(self, event: tuple[Any, ...]) -> Input | None:
        """Tell the sweep, and return the input that tells the shard the same; None if there is nothing to pick."""
        match event:
            case ("submit", tenant, class_, cost):
                if self.naive.policy.rules_for(tenant).paused:
                    return None  # it would be refused
                run = Run(tenant, class_, f"r{len(self.runs)}", self.driver.position(), cost)
                self.runs.append(run)
                self.naive.submit(run)
                return make_submit(tenant, run.run_id, position=run.position, cost=cost, class_=class_)
            case ("policy", pick):
                policy = self.policies[pick % len(self.policies)]
                self.naive.set_policy(policy)
                return SetPolicy(self.driver.position(), policy)
            case ("cancel", pick):
                living = [run for run in self.runs if not run.ended]
                if not living:
                    return None
                run = living[pick % len(living)]
                self.naive.cancel(run)
                return make_cancel(run.tenant, run.run_id)
        return self._report(*event)

    def _report(self, what: str, pick: int, eighths: int = 8) -> Input | None:
        if not self.naive.in_flight:
            return None
        run = list(self.naive.in_flight.values())[pick % len(self.naive.in_flight)]
        dispatch = self.attempts[run.run_id]
        actual = max(1, run.cost * eighths // 8)
        if what == "heartbeat":
            self.naive.own_up(run, actual)
            return make_report(dispatch, HEARTBEAT, actual)
        if what == "succeed":
            self.naive.end(run, actual)
            run.ended = True
            return make_report(dispatch, SUCCEEDED, actual)
        if what == "return":
            self.naive.end(run, 0, back=True)
            return make_report(dispatch, RETURNED)
        self.naive.end(run, actual, back=True)
        return make_report(dispatch, FAILED, actual, retryable=True)

    def compare(self, inputs: list[Input]) -> None:
        """Let both dispatch, and compare all that there is to compare."""
        effects = self.driver.step(*inputs)
        expected = self.naive.fill()
        got = [
            Served(each.run_id, each.tenant, each.class_, each.round, each.deficit_before, each.deficit_after)
            for each in effects.dispatches
        ]
        assert got == expected
        self.attempts |= {each.run_id: each for each in effects.dispatches}
        shard = self.driver.rows["shard",]
        assert isinstance(shard, ShardRecord)
        assert shard.clock == UNIT * self.naive.classes.clock
        for name, sweep in self.naive.sweeps.items():
            ring = self.driver.rows.get(("ring", name), RingRecord(class_=name))
            assert isinstance(ring, RingRecord)
            assert (ring.round, ring.cursor, ring.visiting) == (sweep.round, sweep.cursor, sweep.visiting)
            assert ring.tag == UNIT * self.naive.classes.tag(name)
            for flow in sweep.flows:
                assert self.driver.flow(flow.tenant, name).deficit == flow.deficit, (name, flow.tenant)


@given(st.lists(order_policies(), min_size=1, max_size=3), st.lists(st.lists(events, max_size=4), max_size=30))
@examples(4)
def test_the_served_order_is_that_of_the_plain_sweep(
    policies: list[Policy], steps: list[list[tuple[Any, ...]]]
) -> None:
    both = Both(policies)
    for step in steps:
        inputs = [both.tell(event) for event in step]
        both.compare([each for each in inputs if each is not None])


@pytest.mark.parametrize("seed", range(9))
def test_the_order_is_that_of_the_sweep_over_long_histories(seed: int) -> None:
    """Hypothesis finds the small contradiction, a long random walk the one that needs a past."""
    draw = random.Random(seed)
    runs, tokens = draw.choice((None, 1, 3)), draw.choice((40, 400))
    policies = [
        _with_classes(
            draw,
            make_policy(
                quantum=draw.choice((1, 7, 50)),
                runs=runs,
                tokens=tokens,
                rules={
                    tenant: TenantRules(
                        group=draw.choice((None, *GROUPS)),
                        weight=draw.randint(1, 4),
                        max_runs_in_flight=draw.choice((None, None, 1, 2)),
                    )
                    for tenant in TENANTS
                },
            ),
        )
        for _ in range(3)
    ]
    both = Both(policies)
    for _ in range(400):
        inputs = [both.tell(_random_event(draw)) for _ in range(draw.randint(0, 4))]
        both.compare([each for each in inputs if each is not None])
    assert len(both.driver.dispatches) > 100


def _with_classes(draw: random.Random, policy: Policy) -> Policy:
    """Let classes go in order, in order with minimums, or by weight; and give the groups their weights."""
    mode = draw.choice(("order", "minimums", "shares"))
    classes = tuple(
        PriorityClass(
            name=name,
            weight=draw.randint(1, 6) if mode == "shares" else 1,
            min_share=draw.choice((0, 10, 33)) if mode == "minimums" else 0,
        )
        for name in CLASSES
    )
    return replace(
        policy,
        classes=classes,
        between_classes="shares" if mode == "shares" else "strict",
        groups={group: draw.randint(1, 4) for group in GROUPS},
    )


def _random_event(draw: random.Random) -> tuple[Any, ...]:
    kind = draw.choices(
        ("submit", "succeed", "retry", "return", "heartbeat", "cancel", "policy"), (10, 8, 2, 1, 2, 1, 0.2)
    )[0]
    if kind == "submit":
        cost = draw.choice((draw.randint(1, 20), draw.randint(1, 100), 10**6 if draw.random() < 0.02 else 1))
        return ("submit", draw.choice(TENANTS), draw.choice(CLASSES), cost)
    pick = draw.randrange(1_000)
    return (kind, pick, draw.choice((0, 4, 8, 9, 32))) if kind in {"succeed", "retry", "heartbeat"} else (kind, pick)
