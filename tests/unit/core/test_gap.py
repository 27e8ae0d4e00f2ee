"""What a flow is owed, and what the bound is made of."""

from __future__ import annotations

from streams.core.inputs import HEARTBEAT, RETURNED, SUCCEEDED
from streams.core.policy import Leases, TenantRules
from streams.core.records import RingRecord
from tests.builders import LONG_MS, make_cancel, make_policy, make_report
from tests.drivers import Driver


def ring_row(driver: Driver) -> RingRecord:
    row = driver.rows["ring", "default"]
    assert isinstance(row, RingRecord)
    return row


def figures(driver: Driver) -> tuple[int, int, int]:
    row = ring_row(driver)
    return row.max_estimate, row.max_under, row.max_over


def gap_of(driver: Driver) -> tuple[int, int]:
    view = driver.shard.snapshot().classes[0]
    return view.gap, view.bound


def test_a_flow_is_owed_what_its_rounds_gave_and_it_was_not_served() -> None:
    driver = Driver(make_policy(runs=1, quantum=100, weights={"b": 2}))
    driver.step(
        *driver.requests("a", [f"a{number}" for number in range(9)], cost=60),
        *driver.requests("b", ["b1", "b2"], cost=500),
    )
    assert (driver.flow("a").lag, driver.flow("b").lag) == (40, 0)  # a is visited first: 100, less 60
    driver.succeed(driver.dispatches[0])
    assert (driver.flow("a").lag, driver.flow("b").lag) == (80, 100)  # a: 200 - 120; b: 200 / 2
    for done in range(1, 5):
        driver.succeed(driver.dispatches[done])
    assert driver.served()[-1] == "b1", "it gets 200 a round, and pays 500 in round 3"
    assert (driver.flow("a").lag, driver.flow("b").lag) == (0, 50)  # a: 300 - 5 x 60; b: (600 - 500) / 2


def test_a_newcomer_is_owed_nothing_for_the_round_it_came_in() -> None:
    driver = Driver(make_policy(runs=1, quantum=100, weights={"b": 2}))
    driver.submit("a", *[f"a{number}" for number in range(9)], cost=100)
    driver.submit("b", "b1", cost=500)  # in round 1, while a0 is being served
    lags = []
    for done in range(3):
        driver.succeed(driver.dispatches[done])
        lags.append((driver.dispatches[-1].run_id, driver.flow("b").lag))
    # Round 1 has passed b, then 2, then 3. It gets 200 a round, owed per weight.
    assert lags == [("a1", 0), ("a2", 100), ("a3", 200)]
    driver.succeed(driver.dispatches[-1])
    assert (driver.served()[-1], driver.flow("b").lag) == ("b1", 0)  # 600 in rounds 2 to 4; what is left is dropped


def test_the_gap_is_that_of_the_two_furthest_apart_and_so_is_the_bound() -> None:
    driver = Driver(make_policy(runs=1, quantum=100, weights={"b": 2}))
    driver.submit("a", "a1", "a2", cost=60)
    driver.submit("b", "b1", "b2", cost=500)
    assert gap_of(driver) == (40, 100 + 500 + 250)  # a quantum, and the largest head of each per weight
    driver.submit("c", "c1", cost=500)
    assert gap_of(driver) == (40, 100 + 500 + 250), "b is owed the least, of equals the one with the first place"
    driver.step(make_cancel("b", "b1"), make_cancel("b", "b2"))
    assert gap_of(driver) == (40, 100 + 500 + 500)


def test_one_flow_has_no_gap() -> None:
    driver = Driver(make_policy(runs=1))
    assert gap_of(driver) == (0, 0)
    driver.submit("a", "a1", "a2")
    assert gap_of(driver) == (0, 0)


def test_a_dear_head_that_is_taken_back_has_let_credit_grow() -> None:
    driver = Driver(make_policy(runs=1, quantum=10))
    driver.submit("b", "b1", "b2", "b3", "b4", cost=1_000)
    driver.submit("a", "a1", cost=5_000)
    driver.submit("a", "a2", "a3", cost=1)
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1])
    assert driver.flow("a").lag > 1_000
    driver.step(make_cancel("a", "a1"))
    assert ring_row(driver).max_estimate == 5_000
    assert gap_of(driver)[1] >= 5_000


def test_errors_widen_the_bound_while_there_is_work() -> None:
    driver = Driver(make_policy(runs=2, quantum=100))
    driver.submit("a", *[f"a{number}" for number in range(6)], cost=100)
    driver.submit("b", *[f"b{number}" for number in range(6)], cost=100)
    first, second = driver.dispatches[:2]
    driver.succeed(first, tokens=130)
    driver.succeed(second, tokens=20)
    assert figures(driver) == (100, 30, 80)
    assert (driver.flow_row("a").peak, driver.flow_row("b").peak) == (2, 1)
    assert gap_of(driver)[1] == 100 + (100 + 2 * (30 + 80)) + (100 + 30 + 80)
    driver.serve_all()
    assert figures(driver) == (0, 0, 0), "at rest nothing is measured by them"


def test_the_most_in_flight_counts() -> None:
    driver = Driver(make_policy(runs=3, quantum=1_000))
    driver.submit("a", "a1", "a2", "a3", "a4")
    assert driver.flow_row("a").peak == 3
    driver.succeed(driver.dispatches[0], driver.dispatches[1], driver.dispatches[2])
    assert driver.flow_row("a").peak == 3


def test_what_a_heartbeat_owns_up_to_is_an_error_already() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", cost=100)
    attempt = driver.dispatches[0]
    driver.step(make_report(attempt, HEARTBEAT, 250))
    assert figures(driver) == (100, 150, 0)
    driver.step(make_report(attempt, HEARTBEAT, 240))
    driver.succeed(attempt, tokens=90)
    assert figures(driver) == (0, 0, 0)


def test_what_was_owned_up_to_and_is_given_back_is_one_too() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "a1", "a2", "a3", cost=100)
    driver.step(make_report(driver.dispatches[0], HEARTBEAT, 250))
    driver.succeed(driver.dispatches[0], tokens=90)
    assert figures(driver) == (100, 150, 160)


def test_a_late_report_counts_as_one_more_in_flight() -> None:
    leases = Leases(lease_ms=10, min_lease_ms=1, max_lease_ms=LONG_MS, backoff_ms=0)
    driver = Driver(make_policy(runs=1, leases=leases))
    driver.submit("a", "a1", "a2", cost=100)
    driver.step(after_ms=10)
    assert driver.served() == ["a1", "a1"]
    peak = driver.flow_row("a").peak
    driver.step(make_report(driver.dispatches[0], "failed", 70))
    assert driver.flow_row("a").peak == peak + 1
    assert figures(driver) == (100, 70, 100)  # what was charged was given back, and then it cost 70


def test_debt_is_counted_from_the_beginning() -> None:
    """Who ran it up while nothing was queued isn't owed the rounds that repay it."""
    driver = Driver(make_policy(runs=1, quantum=100))
    driver.submit("a", "a1", cost=100)
    driver.succeed(driver.dispatches[0], tokens=1_000)
    driver.submit("b", "b1", "b2", cost=100)  # b1 goes in round 2, which has passed a: it owes 800
    driver.submit("a", "a2", cost=100)
    assert driver.flow("a").lag == -800
    assert ring_row(driver).max_estimate == 800
    assert gap_of(driver) == (800, 100 + 800 + 800)


def test_the_largest_quantum_there_may_be_fits_a_row_after_any_number_of_rounds() -> None:
    """`Driver` looks at every row. 10^12 tokens x 10^6: nine such rounds are all that 64 bits hold."""
    driver = Driver(make_policy(runs=1, quantum=10**12, weights={"a": 10**6}))
    for number in range(20):
        driver.submit("a", f"a{number}")
        driver.succeed(driver.dispatches[-1])
    assert ring_row(driver).round == 20


def test_the_blocked_are_not_compared_and_not_forgotten() -> None:
    driver = Driver(make_policy(runs=3, quantum=100, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", "a3", cost=60)
    driver.submit("b", "b1", "b2", "b3", "b4", cost=100)
    assert driver.flow("a").state == "blocked"
    assert (driver.flow("a").lag, gap_of(driver)) == (0, (0, 0))
    driver.succeed(driver.dispatches[1])  # rounds pass, and a earns nothing
    driver.succeed(driver.dispatches[0])
    assert driver.served()[-1] == "a2"
    row = driver.flow_row("a")
    assert row.base - row.charged == 40 + 100 - 60, "what was left of its quantum, and one more"


def test_a_new_weight_changes_what_is_owed_per_weight_and_not_what_is_owed() -> None:
    driver = Driver(make_policy(runs=1, quantum=100))
    driver.submit("a", "a1", "a2", cost=40)
    driver.submit("b", "b1", "b2", cost=100)
    assert driver.flow("a").lag == 60
    driver.set_policy(make_policy(runs=1, quantum=100, weights={"a": 3}))
    assert driver.flow("a").lag == 20


def test_what_is_left_of_a_larger_quantum_counts_like_a_head() -> None:
    driver = Driver(make_policy(runs=1, quantum=1_000))
    driver.submit("a", "a1", "a2", cost=100)
    driver.submit("b", "b1", "b2", cost=100)
    assert driver.flow("a").lag == 900
    driver.set_policy(make_policy(runs=1, quantum=10))
    assert ring_row(driver).max_estimate == 890


def test_a_new_weight_leaves_what_the_blocked_are_owed() -> None:
    driver = Driver(make_policy(runs=2, quantum=100, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "a1", "a2", cost=60)
    driver.submit("b", "b1", "b2")
    before = driver.flow_row("a")
    assert before.base - before.charged == 40
    driver.set_policy(make_policy(runs=2, quantum=10, rules={"a": TenantRules(max_runs_in_flight=1)}))
    row = driver.flow_row("a")
    assert row.base - row.charged == 40
    assert ring_row(driver).max_estimate == 100, "a dispatch of b: more than what a holds of its old quantum, 40 - 10"


def test_success_of_a_lost_attempt_of_an_idle_flow_changes_no_figures() -> None:
    leases = Leases(lease_ms=10, min_lease_ms=1, max_lease_ms=LONG_MS, backoff_ms=1_000)
    driver = Driver(make_policy(runs=1, leases=leases))
    driver.submit("a", "a1", cost=100)
    driver.step(after_ms=10)
    driver.step(make_report(driver.dispatches[0], SUCCEEDED, 300))
    assert figures(driver) == (0, 0, 0)


def test_what_is_saved_for_a_head_that_the_cap_holds_back_is_within_the_bound() -> None:
    rules = {"a": TenantRules(max_tokens_in_flight=6)}
    driver = Driver(make_policy(runs=None, tokens=11, quantum=1_000, rules=rules))
    driver.submit("a", "small", cost=1)
    driver.submit("a", "dear", cost=100_000)
    for _ in range(5):
        driver.step(make_report(driver.dispatches[-1], RETURNED))
    assert driver.flow("a").deficit == 5_000
    assert figures(driver) == (100_000, 0, 1)
