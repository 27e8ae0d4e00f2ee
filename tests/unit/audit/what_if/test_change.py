import pytest

from streams.audit.what_if import Change
from streams.core.policy import Policy, TenantRules, Window
from streams.errors import ConfigError
from streams.simulate.deficit_round_robin import Stated

RECORDED = Policy(
    name="recorded",
    quantum=100,
    window=Window(runs=4, tokens=900),
    tenants={"a": TenantRules(weight=2, max_queued_runs=7)},
    default=TenantRules(weight=3, plan="guest"),
)


def test_what_is_not_named_stays_as_it_was() -> None:
    changed = Change(quantum=7).apply(RECORDED)
    assert changed.quantum == 7
    assert (changed.window, changed.tenants, changed.name) == (RECORDED.window, RECORDED.tenants, "recorded")


def test_changes_are_combined() -> None:
    other = Policy(name="other", quantum=9, window=Window(runs=1))
    changed = Change(policy=other, window=5, weights={"b": 4}).apply(RECORDED)
    assert (changed.name, changed.quantum, changed.window) == ("other", 9, Window(runs=5))
    assert changed.rules_for("b").weight == 4


def test_another_window_keeps_that_of_tokens() -> None:
    assert Change(window=5).apply(RECORDED).window == Window(runs=5, tokens=900)


def test_another_weight_keeps_the_other_rules_also_of_who_is_not_named() -> None:
    changed = Change(weights={"a": 5, "stranger": 6}).apply(RECORDED)
    assert changed.rules_for("a") == TenantRules(weight=5, max_queued_runs=7)
    assert changed.rules_for("stranger") == TenantRules(weight=6, plan="guest")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (Change(quantum=0), "quantum"),
        (Change(window=-1), "window.runs"),
        (Change(weights={"a": 0}), "tenants.a.weight"),
    ],
)
def test_what_no_shard_would_take_is_refused_by_name(change: Change, field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        change.apply(RECORDED)
    assert refused.value.field == field


def test_nothing_to_change_is_refused() -> None:
    with pytest.raises(ConfigError, match="what is to be changed"):
        Change()


def test_fifo_knows_the_window_and_nothing_else() -> None:
    assert Change(fifo=True, window=3).apply(RECORDED).window.runs == 3
    for more in ({"policy": RECORDED}, {"quantum": 3}, {"weights": {"a": 1}}):
        with pytest.raises(ConfigError, match="FIFO knows neither"):
            Change(fifo=True, **more)


def test_the_weight_of_nobody_is_refused() -> None:
    recorded = [Stated(0, RECORDED)]
    Change(weights={"a": 1, "seen": 1}).check_names({"seen"}, recorded)
    Change(policy=Policy(tenants={"new": TenantRules()}), weights={"new": 2}).check_names(set(), recorded)
    with pytest.raises(ConfigError, match="nothing is recorded of this tenant"):
        Change(weights={"typo": 1}).check_names({"seen"}, recorded)


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (Change(fifo=True, window=9), "FIFO; window 9 runs"),
        (Change(policy=RECORDED, quantum=12_000), "policy 'recorded'; quantum 12,000"),
        (Change(weights={"a": 1, "b": 2}), "weights a=1, b=2"),
    ],
)
def test_a_change_in_a_line(change: Change, title: str) -> None:
    assert change.title == title
