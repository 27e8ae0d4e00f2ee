"""What a person may see."""

from __future__ import annotations

from dataclasses import replace

from streams.core.inputs import RETURNED, SUCCEEDED
from streams.core.policy import PriorityClass, TenantRules
from streams.core.snapshot import ClassView, FlowView, ShardView
from streams.wire.status import encode_class_status
from tests.assertions import rows_of
from tests.builders import make_policy, make_report
from tests.drivers import START_MS, Driver


def test_the_shard_as_a_whole() -> None:
    driver = Driver(make_policy(runs=4, tokens=900, quantum=50), shard=1, shards=2)
    driver.submit("a", "r1", "r2", "r3", cost=100)
    driver.succeed(driver.dispatches[0], after_ms=160)
    assert driver.shard.snapshot().shard == ShardView(
        shard=1,
        shards=2,
        epoch=0,
        step=3,
        now_ms=START_MS + 160,
        seq=3,
        policy_name="test",
        policy_version=1,
        quantum=50,
        window_runs=2,
        window_tokens=450,
        flight_runs=2,
        flight_tokens=200,
        queued_runs=0,
        queued_bytes=0,
        known_flows=1,
        active_flows=0,
        histories=1,
        attempt_ms=10,  # a sixteenth of the first sample
        waiting_for="work",
        moved_ms=START_MS + 160,
        stuck=False,
    )


def test_a_flow() -> None:
    rules = {"a": TenantRules(plan="gold", weight=3, max_runs_in_flight=9)}
    driver = Driver(make_policy(runs=1, quantum=50, rules=rules))
    driver.submit("a", "r1", cost=100, submitted_ms=5)
    driver.submit("a", "r2", cost=400, submitted_ms=6)
    driver.submit("a", "r3", cost=30, not_before_ms=START_MS + 1_000)
    driver.submit("b", "r1")
    assert driver.shard.snapshot().flows[0] == FlowView(
        tenant="a",
        class_="default",
        plan="gold",
        group=None,
        weight=3,
        state="active",
        skip="turn",
        queued_runs=1,
        queued_tokens=400,
        flight_runs=1,
        flight_tokens=100,
        deficit=0,
        rounds_to_go=3,
        charged=100,
        actual=0,
        dispatched=1,
        ended=0,
        oldest_submitted_ms=6,
        stated_share_ppm=750_000,
        lag=0,
        ratio_ppm=None,
        error_p50_ppm=None,
        error_p90_ppm=None,
    )


def test_states_and_shares() -> None:
    rules = {"capped": TenantRules(max_runs_in_flight=1), "heavy": TenantRules(weight=3)}
    driver = Driver(make_policy(runs=2, quantum=1_000, rules=rules))
    driver.submit("idle", "r0")
    driver.serve_all()
    driver.submit("capped", "r1", "r2")
    driver.submit("heavy", "r1", "r2")
    driver.submit("light", "r1")
    seen = {view.tenant: (view.state, view.stated_share_ppm) for view in driver.shard.snapshot().flows}
    assert seen == {
        "idle": ("idle", 0),
        "capped": ("blocked", 0),
        "heavy": ("active", 750_000),
        "light": ("active", 250_000),
    }


def test_whose_turn_it_is_has_no_rounds_to_go() -> None:
    driver = Driver(make_policy(runs=1, quantum=1_000))
    driver.submit("a", "r1", "r2")
    view = driver.flow("a")
    assert (view.state, view.rounds_to_go, view.deficit) == ("active", 0, 900)


def test_flows_are_ordered_by_class_then_place() -> None:
    driver = Driver(make_policy(classes=("high", "low")))
    driver.submit("z", "r1", class_="low")
    driver.submit("a", "r1", class_="low")
    driver.submit("m", "r1", class_="high")
    assert [(view.class_, view.tenant) for view in driver.shard.snapshot().flows] == [
        ("high", "m"),
        ("low", "z"),
        ("low", "a"),
    ]
    assert [(view.class_, view.place) for view in driver.shard.snapshot().classes] == [("high", 0), ("low", 1)]


def classes_of(driver: Driver) -> dict[str, ClassView]:
    return {view.class_: view for view in driver.shard.snapshot().classes}


def test_a_class() -> None:
    rules = {"capped": TenantRules(max_runs_in_flight=1)}
    driver = Driver(make_policy(runs=2, quantum=100, rules=rules))
    driver.submit("capped", "c1", "c2", cost=60)
    driver.submit("a", "a1", "a2", cost=50)
    driver.submit("b", "b1", cost=90)
    driver.submit("b", "later", not_before_ms=START_MS + 9)
    assert driver.served() == ["c1", "a1"]
    assert driver.shard.snapshot().classes == (
        ClassView(
            class_="default",
            place=0,
            weight=1,
            min_share=0,
            stated_share_ppm=0,
            deficit=0,
            round=2,  # a came in the first, and begins with this one
            known_flows=3,
            active_flows=2,
            blocked_flows=1,
            queued_runs=3,
            queued_tokens=60 + 50 + 90,
            gap=50,  # a is in the middle of its visit, b comes next
            bound=100 + 2 * 90,
            past_charged=0,
            past_dispatched=0,
            past_ended=0,
        ),
    )


def test_classes_that_share() -> None:
    classes = (PriorityClass(name="high", weight=3), PriorityClass(name="low", weight=1))
    driver = Driver(replace(make_policy(runs=1, quantum=100), between_classes="shares", classes=classes))
    driver.submit("a", "r1", "r2", "r3", class_="high", cost=100)
    assert (classes_of(driver)["high"].stated_share_ppm, classes_of(driver)["low"].stated_share_ppm) == (1_000_000, 0)
    driver.submit("b", "r1", "r2", class_="low", cost=100)
    seen = classes_of(driver)
    assert (seen["high"].weight, seen["high"].stated_share_ppm) == (3, 750_000)
    assert (seen["low"].weight, seen["low"].stated_share_ppm) == (1, 250_000)
    assert seen["high"].deficit == -seen["low"].deficit < 0, "high has been served, low has not"


def test_classes_with_a_minimum() -> None:
    classes = (PriorityClass(name="high"), PriorityClass(name="low", min_share=20))
    driver = Driver(replace(make_policy(runs=1, quantum=100), classes=classes))
    driver.submit("a", "r1", "r2", class_="high")
    driver.submit("b", "r1", class_="low")
    seen = classes_of(driver)
    assert (seen["low"].min_share, seen["low"].stated_share_ppm) == (20, 200_000)
    assert (seen["high"].min_share, seen["high"].stated_share_ppm, seen["high"].deficit) == (0, 0, 0)


def test_a_class_that_the_policy_no_longer_names_is_shown_if_it_has_had_flows() -> None:
    driver = Driver(make_policy(runs=1, classes=("old", "older")))
    driver.submit("a", "r1", "r2", class_="old")
    driver.set_policy(make_policy(runs=1, classes=("new",)))
    seen = classes_of(driver)
    assert {name: (view.weight, view.known_flows) for name, view in seen.items()} == {"new": (1, 0), "old": (1, 1)}


def test_what_is_shown_of_estimates() -> None:
    driver = Driver(make_policy(runs=9, quantum=1_000))
    driver.submit("a", "r1", "r2", "r3", "r4", cost=100)
    assert (driver.flow("a").ratio_ppm, driver.flow("a").error_p50_ppm, driver.flow("a").error_p90_ppm) == (None,) * 3
    driver.succeed(driver.dispatches[0], tokens=200)
    driver.step(make_report(driver.dispatches[1], RETURNED))  # it has cost nothing, and says nothing
    view = driver.flow("a")
    assert view.ratio_ppm == 2_000_000
    assert (view.error_p50_ppm, view.error_p90_ppm) == driver.shard._state.estimator.errors_of("a")


def test_what_is_shown_fits_a_message() -> None:
    """`a` has a millionth of its group's weight, and runs of the largest cost there may be."""
    rules = {"a": TenantRules(group="g"), "b": TenantRules(group="g", weight=999_999)}
    driver = Driver(replace(make_policy(runs=100, quantum=10**6, rules=rules), groups={"g": 1}))
    driver.submit("a", *[f"a{number}" for number in range(200)], cost=10**12)
    driver.submit("b", "b1", "b2")
    driver.step(make_report(driver.dispatches[0], SUCCEEDED, 1))
    seen = driver.shard.snapshot().classes[0]
    assert seen.bound == (1 << 63) - 1
    assert 0 <= seen.gap <= seen.bound
    assert encode_class_status(seen, 0, START_MS)


def test_looking_changes_nothing() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "r1", "r2")
    before = rows_of(driver.shard)
    driver.shard.snapshot()
    assert rows_of(driver.shard) == before
