"""Load that adapts: credit for what could not be used before, and refunds to who files one run at a time."""

from __future__ import annotations

from streams.core.policy import Policy
from tests.builders import LONG_MS, make_policy
from tests.simulation.closed_loop import SECOND, Outcome, Thread, run_closed_loop

LASTS = 200 * SECOND


def crowded(estimate: int, *, single_cost: int = 100) -> Outcome:
    """Eight tenants on eight slots: seven that are always backlogged, and one that files one run after the other.

    `estimate` is what the single one's producer says its runs will cost.
    """
    policy = make_policy(quantum=100, runs=8)
    others = [Thread(f"t{number % 7}", 10**6, cost=100) for number in range(7 * 10)]
    return run_closed_loop(policy, [Thread("single", 10**6, single_cost, estimate=estimate), *others], until=LASTS)


def test_one_run_at_a_time_gets_its_share_if_it_is_guessed_right() -> None:
    assert 0.12 <= crowded(100).share("single", LASTS) <= 0.13  # 1/8


def test_one_run_at_a_time_that_is_always_guessed_too_high_is_not_starved() -> None:
    """Its refund comes when its queue is empty. If that made no credit, it would pay ten times for each run."""
    assert 0.10 <= crowded(1_000).share("single", LASTS) <= 0.13


def test_a_guess_that_is_too_low_brings_nothing() -> None:
    assert crowded(10).share("single", LASTS) <= 0.13


def test_bursts_that_go_quiet_until_their_bills_are_in_gain_nothing() -> None:
    """A burst looks cheap, a twentieth of the truth, and fits one visit; the bills find an empty queue.

    If debt were forgiven to who has nothing queued, it would get a third of the pool. A ninth is fair.
    """
    policy = make_policy(quantum=200, runs=8)
    burst = Thread("dodger", 10**6, 400, runs_for=4 * SECOND, thinks_for=3 * SECOND, estimate=20, in_step=True)
    others = [Thread(f"t{number % 8}", 10**6, cost=100) for number in range(8 * 10)]
    outcome = run_closed_loop(policy, [*[burst] * 6, *others], until=LASTS)
    assert outcome.share("dodger", LASTS) <= 0.125


def policy_of(slots: int) -> Policy:
    return make_policy(quantum=1, runs=slots)


def test_what_a_tenant_could_not_use_is_not_paid_back_later() -> None:
    """For 20 s `b` has one thread on three slots and `a` takes the rest; from then on both have two threads."""
    threads = [
        Thread("a", 40, cost=1),
        Thread("a", 40, cost=1),
        Thread("b", 40, cost=1),
        Thread("b", 40, cost=1, starts_at=20 * SECOND),
    ]
    outcome = run_closed_loop(policy_of(3), threads)
    assert [outcome.average(tenant, 0, 20 * SECOND) for tenant in "ab"] == [2, 1]
    assert [outcome.average(tenant, 20 * SECOND, 40 * SECOND) for tenant in "ab"] == [1.5, 1.5]


def test_one_short_run_always_in_flight_winds_no_credit_up() -> None:
    """`a` keeps one run in flight for ever and has nothing queued; then it floods. It has earned nothing meanwhile."""
    threads = [Thread("a", 1, cost=1, runs_for=50 * SECOND)]
    threads += [Thread("b", 500, cost=1) for _ in range(6)]
    threads += [Thread("a", 500, cost=1, starts_at=50 * SECOND) for _ in range(6)]
    outcome = run_closed_loop(policy_of(4), threads, until=70 * SECOND)
    assert abs(outcome.average("a", 50 * SECOND, 60 * SECOND) - 2) < 0.21
    assert LONG_MS > 100 * SECOND  # no lease ran out in between
