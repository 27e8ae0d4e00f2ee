"""How much an estimator remembers, and what it forgets first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.estimator import MAX_FORGOTTEN, Estimator, History
from streams.core.invariants import InvariantBroken, check
from streams.core.policy import Memory
from streams.core.records import HISTORY, HistoryRecord, Key, Record, key_of
from streams.core.state import State
from tests.assertions import plain
from tests.builders import make_policy, make_submit
from tests.drivers import Driver
from tests.unit.core.learning import DEFAULT, RULES, learn


def names(estimator: Estimator) -> list[str]:
    """Return tenant/workflow of all that is remembered, the least recently used first."""
    return ["/".join(key[1:]) for key in estimator.histories]


def guess(estimator: Estimator, tenant: str, workflow: str) -> int:
    request = make_submit(tenant, "r", position=1, cost=None, workflow=workflow)
    return estimator.estimate(request, DEFAULT, RULES)


def test_the_least_recently_used_of_a_tenant_goes_first() -> None:
    estimator, memory = Estimator(), Memory(tenant_histories=2)
    learn(estimator, 5, tenant="b", workflow="x", memory=memory)
    for workflow in ("x", "y", "x", "z"):
        learn(estimator, 5, workflow=workflow, memory=memory)
    assert names(estimator) == ["b/x", "a/x", "a/z"]


def test_the_least_recently_used_of_the_shard_goes_first() -> None:
    estimator, memory = Estimator(), Memory(histories=2)
    for tenant in ("a", "b", "a", "c"):
        learn(estimator, 5, tenant=tenant, memory=memory)
    assert names(estimator) == ["a/w", "c/w"]


def test_who_invents_workflows_forgets_only_its_own() -> None:
    estimator, memory = Estimator(), Memory(histories=5, tenant_histories=3)
    learn(estimator, 5, tenant="b", memory=memory)
    learn(estimator, 5, tenant="c", memory=memory)
    for number in range(100):
        learn(estimator, 5, workflow=f"w{number}", memory=memory)
    assert names(estimator) == ["b/w", "c/w", "a/w97", "a/w98", "a/w99"]


def test_asking_for_an_estimate_is_no_use() -> None:
    estimator, memory = Estimator(), Memory(tenant_histories=2)
    for workflow in ("x", "y"):
        learn(estimator, 5, workflow=workflow, memory=memory)
    guess(estimator, "a", "x")
    learn(estimator, 5, workflow="z", memory=memory)
    assert names(estimator) == ["a/y", "a/z"]


def test_what_is_forgotten_no_longer_counts_in_any_mean() -> None:
    estimator, memory = Estimator(), Memory(tenant_histories=1)
    learn(estimator, 100, workflow="x", memory=memory)
    learn(estimator, 700, workflow="y", memory=memory)
    assert guess(estimator, "a", "x") == 700  # the tenant's mean: nobody has a history of x any more
    assert guess(estimator, "b", "x") == DEFAULT
    assert guess(estimator, "b", "y") == 700


def test_names_of_the_forgotten_are_not_kept() -> None:
    estimator, memory = Estimator(), Memory(histories=1)
    for number in range(50):
        learn(estimator, 5, tenant=f"t{number}", workflow=f"w{number}", memory=memory)
    assert set(estimator.tenants) == {"t49"}
    assert set(estimator.workflows) == {"w49"}


@pytest.mark.parametrize("memory", [Memory(histories=3), Memory(tenant_histories=3)])
def test_a_lowered_limit_takes_hold_a_few_at_each_run(memory: Memory) -> None:
    estimator = Estimator()
    for number in range(10):
        learn(estimator, 5, workflow=f"w{number}")
    changed: dict[Key, Record | None] = {}
    learn(estimator, 5, workflow="w9", memory=memory, changed=changed)
    assert [key for key, row in changed.items() if row is None] == [(HISTORY, "a", f"w{n}") for n in range(2)]
    learn(estimator, *[5] * 3, workflow="new", memory=memory)
    assert names(estimator) == ["a/w8", "a/w9", "a/new"]


def test_the_rows_of_the_forgotten_go_in_the_same_step() -> None:
    """The driver compares the rows kept from `changed` with those dumped."""
    driver = Driver(make_policy(runs=None, memory=Memory(histories=4, tenant_histories=2)))
    for number in range(20):
        driver.submit(f"t{number % 3}", f"r{number}", workflow=f"w{number}")
        driver.succeed(driver.dispatches[-1], tokens=number)
        if number % 7 == 6:
            driver.take_over()
    rows = [row for row in driver.rows.values() if isinstance(row, HistoryRecord)]
    assert sorted(row.workflow for row in rows) == ["w16", "w17", "w18", "w19"]


def test_order_of_use_survives_a_takeover() -> None:
    driver = Driver(make_policy(runs=None, memory=Memory(tenant_histories=2)))
    for number, workflow in enumerate(("z", "a", "z")):
        driver.submit("t", f"r{number}", workflow=workflow)
        driver.succeed(driver.dispatches[-1])
    driver.take_over()
    driver.submit("t", "last", workflow="m")
    driver.succeed(driver.dispatches[-1])
    assert {key for key in driver.rows if key[0] == HISTORY} == {(HISTORY, "t", "z"), (HISTORY, "t", "m")}


@dataclass
class Naive:
    """All histories in one list, the least recently used first; every mean summed up anew."""

    histories: list[HistoryRecord] = field(default_factory=list)

    def learn(self, learned: HistoryRecord, memory: Memory) -> None:
        """Take in the history as it is after a run, and forget as stated."""
        self.histories = [each for each in self.histories if key_of(each) != key_of(learned)] + [learned]
        own = [each for each in self.histories if each.tenant == learned.tenant]
        self._forget(own, memory.tenant_histories)
        self._forget(self.histories, memory.histories)

    def mean_fp(self, **of: str) -> int | None:
        found = [h.mean_fp for h in self.histories if all(getattr(h, name) == value for name, value in of.items())]
        return sum(found) // len(found) if found else None

    def _forget(self, histories: Iterable[HistoryRecord], limit: int) -> None:
        listed = list(histories)
        gone = list(islice(listed, max(0, min(len(listed) - limit, MAX_FORGOTTEN))))
        self.histories = [each for each in self.histories if each not in gone]


limits = st.integers(1, 5)
runs = st.tuples(st.sampled_from("abc"), st.sampled_from("uvwxyz"), st.integers(0, 10**6))
lives = st.lists(st.tuples(runs, st.builds(Memory, histories=limits, tenant_histories=limits), st.booleans()))


@given(lives)
def test_it_remembers_what_a_naive_one_does(lived: list[tuple[tuple[str, str, int], Memory, bool]]) -> None:
    """Under limits that change, and with takeovers in between."""
    estimator, naive = Estimator(), Naive()
    rows: dict[Key, Record] = {}
    for (tenant, workflow, cost), memory, taken_over in lived:
        changed: dict[Key, Record | None] = {}
        history = learn(estimator, cost, tenant=tenant, workflow=workflow, memory=memory, changed=changed)
        copy: Any = plain(history)
        naive.learn(copy, memory)
        for key, row in changed.items():
            rows.pop(key, None)
            if row is not None:
                rows[key] = plain(row)
        if taken_over:
            estimator = Estimator(map(plain, sorted(rows.values(), key=key_of)))  # type: ignore[arg-type]
        assert [plain(each) for each in estimator.histories.values()] == naive.histories
        assert {key_of(each): each for each in naive.histories} == rows
        for own in "abc":
            known = estimator.tenants.get(own)
            assert naive.mean_fp(tenant=own) == (None if known is None else known.sum_fp // known.number)
            assert known is None or list(known.histories) == [h.workflow for h in naive.histories if h.tenant == own]
        for used in "uvwxyz":
            mean = estimator.workflows.get(used)
            assert naive.mean_fp(workflow=used) == (None if mean is None else mean.sum_fp // mean.number)


@pytest.fixture
def remembering() -> Driver:
    driver = Driver(make_policy(runs=None))
    for number, workflow in enumerate("xyx"):
        driver.submit("t", f"r{number}", workflow=workflow)
        driver.succeed(driver.dispatches[-1])
    return driver


def first(state: State) -> History:
    return next(iter(state.estimator.histories.values()))


@pytest.mark.parametrize(
    ("corrupt", "what"),
    [
        (lambda state: state.estimator.histories.move_to_end(first(state).key), "not in the order of their use"),
        (lambda state: setattr(first(state), "last_use", 0), "a use that was never counted"),
        (lambda state: setattr(state.record, "uses", 2), "a use that was never counted"),
        (lambda state: setattr(first(state), "counted", 7), "t/y: runs in the sketch"),
        (lambda state: first(state).ratios.update({8: 0}), "t/y: remembered without a run"),
        (lambda state: setattr(first(state), "count", 0), "t/y: remembered without a run"),
        (lambda state: state.estimator.tenants["t"].move_to_end(first(state)), "not those of the tenants"),
        (lambda state: state.estimator.tenants.clear(), "not those of the tenants"),
        (lambda state: state.estimator.workflows.clear(), "a mean of means"),
        (lambda state: setattr(state.estimator.tenants["t"], "number", 3), "a mean of means"),
        (lambda state: setattr(first(state), "mean_fp", 1), "a mean of means"),
    ],
)
def test_a_corrupted_memory_is_found_out(remembering: Driver, corrupt: Callable[[State], None], what: str) -> None:
    check(remembering.shard)
    corrupt(remembering.shard._state)
    with pytest.raises(InvariantBroken, match=what):
        check(remembering.shard)
