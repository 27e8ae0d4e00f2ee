"""What a run will cost: history, priors, hints, bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.estimator import FP_BITS, Estimator, follow
from streams.core.policy import Estimates, EstimateSource
from streams.core.records import HistoryRecord
from tests.builders import make_submit
from tests.unit.core.learning import DEFAULT, RULES, learn


def guess(
    estimator: Estimator,
    rules: Estimates = RULES,
    *,
    tenant: str = "a",
    workflow: str = "w",
    hint: int | None = None,
    max_tokens: int | None = None,
) -> int:
    request = make_submit(tenant, "r", position=1, cost=hint, workflow=workflow, max_tokens=max_tokens)
    return estimator.estimate(request, DEFAULT, rules)


def test_without_any_history_the_class_default_stands() -> None:
    assert guess(Estimator()) == DEFAULT


def test_history_is_a_plain_mean_at_first() -> None:
    history = learn(Estimator(), 100, 200, 300)
    assert (history.count, history.mean_fp >> FP_BITS, history.last_use) == (3, 200, 3)


def test_the_errors_of_a_tenant_are_those_of_its_last_runs() -> None:
    estimator = Estimator()
    assert estimator.errors_of("a") is None
    learn(estimator, *[DEFAULT] * 6, workflow="exact")
    learn(estimator, *[DEFAULT * 4] * 3, workflow="dear")
    learn(estimator, DEFAULT // 4, workflow="cheap")
    learn(estimator, *[1] * 50, tenant="b")
    assert estimator.errors_of("a") == (0, 3_000_000)
    learn(estimator, *[DEFAULT] * 600, workflow="dear")  # the three dear ones have faded
    assert estimator.errors_of("a") == (0, 0)
    learn(estimator, *[DEFAULT // 4] * 600, workflow="dear")
    assert estimator.errors_of("a") == (750_000, 750_000)


def test_a_history_without_a_sketch_has_no_errors() -> None:
    assert Estimator([HistoryRecord("a", "w", count=1)]).errors_of("a") is None


def test_a_sketch_holds_the_last_hundreds_of_runs() -> None:
    estimator = Estimator()
    assert learn(estimator, *[DEFAULT] * 255).ratios == {0: 255}
    assert learn(estimator, DEFAULT * 2).ratios == {0: 127, 4: 1}
    assert learn(estimator, *[DEFAULT * 2] * 127).ratios == {0: 127, 4: 128}
    loaded = Estimator([HistoryRecord("a", "w", ratios={0: 127, 4: 128})])
    assert learn(loaded, DEFAULT).ratios == {0: 64, 4: 64}


def test_old_runs_fade() -> None:
    estimator = Estimator()
    learn(estimator, *[100] * 100, decay=8)
    history = learn(estimator, *[1_000] * 40, decay=8)
    assert 990 <= history.mean_fp >> FP_BITS <= 1_000


@pytest.mark.parametrize("cost", [1, 5_000])
def test_the_prior_weighs_as_much_as_its_number_of_runs(cost: int) -> None:
    estimator = Estimator([HistoryRecord("other", "w", count=10, mean_fp=700 << FP_BITS)])
    learn(estimator, cost, cost)
    prior = (700 + cost) // 2  # the workflow's mean over its tenants, this one included
    assert guess(estimator) == pytest.approx((4 * prior + 2 * cost) / 6, abs=1)


def test_a_long_history_needs_no_prior() -> None:
    estimator = Estimator(
        [
            HistoryRecord("a", "w", count=4 << 8, mean_fp=50 << FP_BITS),
            HistoryRecord("b", "w", count=1, mean_fp=10**6 << FP_BITS),
        ]
    )
    assert guess(estimator) == 50


def test_an_unknown_workflow_of_a_known_tenant_costs_what_its_others_cost() -> None:
    estimator = Estimator()
    learn(estimator, 300, workflow="x")
    learn(estimator, 500, workflow="y")
    assert guess(estimator, workflow="new") == 400


def test_a_workflow_others_use_is_a_better_guess_than_the_tenants_other_workflows() -> None:
    estimator = Estimator()
    learn(estimator, 300, workflow="x")
    learn(estimator, 900, tenant="b", workflow="w")
    assert guess(estimator) == 900


def test_fractions_are_rounded_to_the_nearest_token() -> None:
    estimator = Estimator()
    learn(estimator, 1, 2)
    assert guess(estimator, Estimates(prior_runs=0)) == 2  # 1.5 and up
    learn(estimator, 1)
    assert guess(estimator, Estimates(prior_runs=0)) == 1  # 1.33


@pytest.mark.parametrize(
    ("source", "hint", "expected"),
    [
        ("history", 5, DEFAULT),
        ("history", None, DEFAULT),
        ("hint", 5, 5),
        ("hint", 9_999, 9_999),
        ("hint", None, DEFAULT),
        ("max", 5, DEFAULT),
        ("max", 9_999, 9_999),
        ("max", None, DEFAULT),
    ],
)
def test_whose_guess_counts(source: EstimateSource, hint: int | None, expected: int) -> None:
    assert guess(Estimator(), Estimates(source=source), hint=hint) == expected


def test_max_tokens_bounds_the_estimate() -> None:
    assert guess(Estimator(), max_tokens=10) == 10
    assert guess(Estimator(), Estimates(source="hint"), hint=5, max_tokens=10) == 5


@pytest.mark.parametrize("max_tokens", [None, 0, 3])
def test_no_run_is_free(max_tokens: int | None) -> None:
    rules = Estimates(source="hint", min_charge=7)
    assert guess(Estimator(), rules, hint=0, max_tokens=max_tokens) == 7


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 10**9)), max_size=20))
def test_an_estimator_loaded_from_its_records_guesses_the_same(learned: list[tuple[str, str, int]]) -> None:
    estimator = Estimator()
    for tenant, workflow, cost in learned:
        learn(estimator, cost, tenant=tenant, workflow=workflow)
    loaded = Estimator(estimator.histories.values())
    for tenant in "abc":
        for workflow in "xyz":
            assert guess(loaded, tenant=tenant, workflow=workflow) == guess(estimator, tenant=tenant, workflow=workflow)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 64))
def test_a_decayed_mean_stays_among_its_samples(samples: list[int], decay: int) -> None:
    mean = 0
    for count, sample in enumerate(samples, 1):
        mean = follow(mean, sample << FP_BITS, min(count, decay))
    assert min(samples) <= (mean >> FP_BITS) + 1
    assert mean >> FP_BITS <= max(samples)
