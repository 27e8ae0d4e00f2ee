"""Who gives way when the backlog of the shard is full."""

from __future__ import annotations

from dataclasses import replace

from streams.core import counts, overload, reasons
from streams.core.flows import Tenant
from streams.core.inputs import FAILED, RETURNED
from streams.core.overload import Backlogs, queued_tokens
from streams.core.policy import Limits, Memory, Policy, TenantRules
from streams.core.shard import Shard
from streams.core.sizes import NAME_WEIGHT
from tests.assertions import plain, said
from tests.builders import make_cancel, make_policy, make_report
from tests.compiled import patched
from tests.drivers import START_MS, Driver

BUSY = "busy"  # holds the only place, so that all others wait


def dropping(limit: int, rules: dict[str, TenantRules] | None = None) -> Policy:
    return make_policy(runs=1, rules=rules, limits=Limits(max_queued_runs=limit, overload="drop_longest"))


def crowded(policy: Policy) -> Driver:
    driver = Driver(policy)
    driver.submit(BUSY, "r0")
    return driver


def test_the_longest_backlog_loses_its_last_run_and_the_newcomer_gets_in() -> None:
    driver = crowded(dropping(4))
    driver.submit("whale", "w1", "w2", "w3", "w4")
    out = driver.submit("small", "s1")
    (rejection,) = out.rejections
    assert (rejection.tenant, rejection.run_id, rejection.reason) == ("whale", "w4", reasons.OVERLOADED)
    assert (rejection.limit, rejection.value, rejection.retry_after_ms) == (4, 5, 1_000)
    assert (out.counts[counts.DROPPED], out.counts[counts.ACCEPTED]) == (1, 1)
    assert driver.serve_all() == ["r0", "w1", "s1", "w2", "w3"]


def test_who_has_the_longest_backlog_pushes_out_itself() -> None:
    driver = crowded(dropping(4))
    driver.submit("small", "s1")
    out = driver.submit("whale", *[f"w{number}" for number in range(50)])
    assert [rejection.run_id for rejection in out.rejections] == [f"w{number}" for number in range(3, 50)]
    assert driver.serve_all() == ["r0", "s1", "w0", "w1", "w2"]


def test_backlogs_are_compared_by_tokens_per_weight() -> None:
    driver = crowded(dropping(5, {"paying": TenantRules(weight=4)}))
    driver.submit("paying", "p1", "p2", "p3", cost=100)
    driver.submit("free", "f1", "f2", cost=100)
    assert [each.run_id for each in driver.submit("other", "o1", cost=10).rejections] == ["f2"]
    assert [each.run_id for each in driver.submit("paying", "p4", cost=1_000).rejections] == ["p4"]


def test_of_equal_backlogs_the_first_by_name_gives_way() -> None:
    driver = crowded(dropping(2))
    driver.submit("b", "b1")
    driver.submit("a", "a1")
    assert [each.run_id for each in driver.submit("c", "c1").rejections] == ["a1"]


def test_a_run_that_waits_for_its_time_can_give_way() -> None:
    driver = crowded(dropping(2))
    driver.submit("whale", "w1", "w2", not_before_ms=START_MS + 10_000)
    assert [each.run_id for each in driver.submit("small", "s1").rejections] == ["w2"]


def test_a_run_in_flight_does_not_give_way() -> None:
    driver = Driver(dropping(1))
    driver.submit("whale", "in-flight")
    driver.submit("whale", "waiting")
    assert [each.run_id for each in driver.submit("small", "s1", cost=1).rejections] == ["waiting"]


def test_a_run_that_gave_way_may_be_sent_again() -> None:
    driver = crowded(dropping(1))
    driver.submit("whale", "w1")
    driver.submit("small", "s1", cost=1)
    driver.serve_all()
    assert not driver.submit("whale", "w1").rejections


def test_the_ends_of_the_queues_are_looked_at_if_the_last_to_come_is_back() -> None:
    policy = make_policy(runs=1, classes=("high", "low"), limits=Limits(max_queued_runs=2, overload="drop_longest"))
    driver = Driver(replace(policy, leases=replace(policy.leases, backoff_ms=1_000, max_backoff_ms=1_000)))
    driver.submit("whale", "first")
    driver.submit("whale", "low1", "low2", class_="low")
    driver.set_policy(replace(driver.shard._state.policy.policy, limits=Limits()))
    driver.submit("whale", "high", class_="high")
    driver.succeed(driver.dispatches[0])  # high goes next, and fails
    effects = driver.step(make_report(driver.dispatches[-1], FAILED, 10, retryable=True))
    assert [each.run_id for each in effects.dispatches] == ["low1"]
    driver.set_policy(replace(driver.shard._state.policy.policy, limits=policy.limits))
    (rejection,) = driver.submit("small", "s1", cost=1).rejections
    assert (rejection.run_id, rejection.retry_after_ms) == ("low2", 1_000)
    (rejection,) = driver.submit("small", "s2", cost=1).rejections
    assert (rejection.run_id, rejection.retry_after_ms) == ("high", None)  # nothing fresh is left


def test_a_run_that_was_dispatched_and_gave_way_is_remembered() -> None:
    """Sent again it would be numbered from 1, and a late report on its first attempt taken for the new one."""
    policy = dropping(1)
    driver = Driver(replace(policy, leases=replace(policy.leases, backoff_ms=1_000, max_backoff_ms=1_000)))
    (dispatch,) = driver.submit("whale", "w1").dispatches
    driver.step(make_report(dispatch, FAILED, 10, retryable=True))
    driver.submit(BUSY, "r0")
    assert [each.run_id for each in driver.submit("small", "s1", cost=1).rejections] == ["w1"]
    assert driver.submit("whale", "w1").rejections[0].reason == reasons.DUPLICATE


def heavy(limit: int, rules: dict[str, TenantRules] | None = None) -> Policy:
    return make_policy(runs=1, rules=rules, limits=Limits(max_queued_bytes=limit, overload="drop_longest"))


def test_where_bytes_are_short_the_heaviest_gives_way_however_cheap_its_runs() -> None:
    driver = crowded(heavy(1_000))
    driver.submit("small", "s1", "s2", cost=5_000, body=bytes(100))
    out = driver.submit("heavy", *[f"h{number}" for number in range(4)], cost=1, body=bytes(300))
    assert [each.run_id for each in out.rejections] == ["h2", "h3"]
    out = driver.submit("small", "s3", "s4", "s5", cost=5_000, body=bytes(100))
    assert [(each.run_id, each.limit, each.value) for each in out.rejections] == [("h1", 1_000, 1_100)]
    assert (driver.shard._state.held_bytes, out.rejections[0].reason) == (800, reasons.OVERLOADED)


def test_bytes_are_compared_per_weight() -> None:
    driver = crowded(heavy(1_000, {"paying": TenantRules(weight=4)}))
    driver.submit("paying", "p1", "p2", body=bytes(400))
    driver.submit("free", "f1", body=bytes(200))
    assert [each.run_id for each in driver.submit("other", "o1", body=bytes(50)).rejections] == ["f1"]


def test_what_is_in_flight_is_held_and_cannot_give_way_so_the_newcomer_does() -> None:
    driver = Driver(heavy(1_000))
    driver.submit("whale", "in-flight", body=bytes(900))
    assert [each.run_id for each in driver.submit("small", "s1", body=bytes(200)).rejections] == ["s1"]
    assert driver.submit("small", "s1", body=bytes(100)).rejections == []


def test_a_smaller_limit_in_bytes_ends_when_nothing_waits() -> None:
    driver = Driver(heavy(1_000))
    driver.submit("whale", "in-flight", body=bytes(900))
    driver.set_policy(heavy(100))
    assert [each.run_id for each in driver.submit("small", "s1", body=bytes(50)).rejections] == ["s1"]


def test_in_one_step_only_so_many_give_way_and_then_newcomers_are_refused() -> None:
    driver = crowded(dropping(100))
    driver.submit("whale", *[f"w{number}" for number in range(50)])
    driver.set_policy(dropping(5))
    with patched(overload, "MAX_DROPPED", 10):
        out = driver.submit("small", "s1", "s2", "s3")
        assert [each.run_id for each in out.rejections[:10]] == [f"w{number}" for number in range(49, 39, -1)]
        assert [(each.run_id, each.value) for each in out.rejections[10:]] == [("s2", 41), ("s3", 41)]
        assert out.counts == {counts.ACCEPTED: 1, counts.DROPPED: 10, counts.REFUSED: 2, "refused.overloaded": 2}
        driver.submit("small", "s2")
    assert driver.shard.snapshot().shard.queued_runs == 32


def test_in_one_step_only_so_many_bytes_give_way() -> None:
    driver = crowded(heavy(1_000))
    driver.submit("whale", *[f"w{number}" for number in range(10)], body=bytes(100))
    with patched(overload, "MAX_DROPPED_BYTES", 2 * (100 + 14 * NAME_WEIGHT) + 1):
        out = driver.submit("small", *[f"s{number}" for number in range(5)], body=bytes(100))
    assert [each.run_id for each in out.rejections] == ["w9", "w8", "w7", "s3", "s4"]
    assert [each.value for each in out.rejections] == [1_100, 1_100, 1_100, 1_000, 1_000]


def test_a_tenant_that_only_gives_way_is_searched_without_its_gaps() -> None:
    driver = Driver(dropping(10_000), doubted=False)
    driver.submit(BUSY, "r0")
    driver.submit("whale", *[f"w{number}" for number in range(9_999)])
    (tenant,) = [each for each in driver.shard._state.tenants.values() if each.name == "whale"]
    before = tenant.runs
    for number in range(4_096):
        driver.shard.step(driver.requests("small", [f"s{number}"], cost=1), START_MS)
    assert tenant.runs is before
    driver.shard.step(driver.requests("small", ["one more", "and one"], cost=1), START_MS)
    assert (tenant.runs is before, len(tenant.runs), tenant.holes) == (False, 9_999 - 4_097, 0)


def test_a_run_that_came_back_leaves_no_row_when_it_gives_way() -> None:
    driver = Driver(dropping(1))
    (dispatch,) = driver.submit("whale", "w1").dispatches
    driver.submit(BUSY, "r0", cost=1)
    driver.step(make_report(dispatch, RETURNED))  # r0 has the place now, or w1 again
    driver.submit("small", "s1", cost=1)
    waiting = [key for key in driver.rows if key[0] == "run"]
    assert len(waiting) == 2  # one in flight, one waits
    assert {key[1:] for key in driver.rows if key[0] == "retry"} <= {key[1:] for key in waiting}


def test_a_smaller_limit_is_met_by_the_next_request() -> None:
    driver = crowded(dropping(100))
    driver.submit("whale", *[f"w{number}" for number in range(20)])
    driver.set_policy(dropping(5))
    assert len(driver.submit("small", "s1").rejections) == 16


def test_memory_of_backlogs_is_bounded() -> None:
    """Ever more noted loads are dropped with the heap that holds them; another is made when it is needed."""
    driver = crowded(dropping(3))
    driver.submit("whale", "w1", "w2", "w3")
    for number in range(6_000):
        driver.shard.step(driver.requests("whale", [f"x{number}"]), START_MS)
    backlogs = driver.shard._state.backlogs
    assert backlogs is None or len(backlogs._heap) <= backlogs._limit


def test_memory_of_bytes_is_bounded() -> None:
    driver = crowded(heavy(1_000))
    driver.submit("whale", "w1", body=bytes(1_000))
    most = 0
    for number in range(6_000):
        driver.shard.step(driver.requests("whale", [f"x{number}"], body=bytes(10)), START_MS)
        heaviest = driver.shard._state.heaviest
        assert heaviest is not None
        most = max(most, len(heaviest._heap))
    assert 1_000 < most < 2_000


def test_the_top_may_be_out_of_date() -> None:
    driver = crowded(dropping(100))
    driver.submit("a", "a1", "a2", "a3")
    driver.submit("b", "b1", "b2")
    backlogs = Backlogs(driver.shard._state.tenants, queued_tokens)
    assert backlogs.longest().name == "a"
    driver.step(make_cancel("a", "a1"), make_cancel("a", "a2"))
    assert backlogs.longest().name == "b"
    driver.step(make_cancel("a", "a3"), make_cancel("b", "b1"), make_cancel("b", "b2"))
    driver.submit("c", "c1")
    backlogs.note(driver.shard._state.tenants["c"])
    assert backlogs.longest().name == "c"


def test_a_tenant_that_is_forgotten_and_named_again_may_have_as_much_waiting_as_before() -> None:
    driver = Driver(replace(dropping(1), memory=Memory(flows=2)))
    driver.submit(BUSY, "r0")
    driver.submit("a", "a1")
    driver.submit("a", "a2")  # gives way: from here on loads are noted
    driver.step(make_cancel("a", "a1"))
    driver.submit("b", "b1")
    assert "a" not in driver.shard._state.tenants
    driver.step(make_cancel("b", "b1"))
    driver.submit("a", "a3")  # the same load as what is noted of its namesake
    assert [each.run_id for each in driver.submit("a", "a4").rejections] == ["a4"]
    assert driver.serve_all() == ["r0", "a3"]


def test_idle_tenants_cost_those_who_give_way_nothing() -> None:
    driver = Driver(dropping(4), doubted=False)
    driver.submit(BUSY, "r0")
    for number in range(500):  # known from now on
        driver.submit(f"idle-{number}", "r", cost=1)
        driver.step(make_cancel(f"idle-{number}", "r"))
    looked_at: list[str] = []

    def count(tenant: Tenant) -> int:
        looked_at.append(tenant.name)
        return queued_tokens(tenant)

    driver.submit("whale", "w1", "w2", "w3", "w4", "w5")
    backlogs = driver.shard._state.backlogs
    assert backlogs is not None
    backlogs.load = count
    driver.submit("whale", *[f"x{number}" for number in range(5_000)])
    assert set(looked_at) == {"whale"}
    assert driver.shard._state.backlogs is backlogs


def test_who_gives_way_is_the_same_after_a_load() -> None:
    """`early` asked to wait, and is queued behind its place; `late` has been dispatched, and came back."""
    policy = make_policy(runs=2, limits=Limits(max_queued_runs=2, overload="drop_longest"))
    driver = Driver(policy)
    driver.submit(BUSY, "r0")
    driver.submit("a", "early", not_before_ms=START_MS + 50, cost=1_000)
    (late,) = driver.submit("a", "late").dispatches
    driver.submit("a", "last")
    driver.step(after_ms=50)
    driver.step(make_cancel("a", "last"), *driver.requests("b", ["b1"], cost=1), make_report(late, RETURNED))
    loaded = Shard.load(0, 1, [plain(row) for row in driver.rows.values()])
    request = driver.requests("c", ["c1"], cost=1)
    effects = driver.step(*request)
    assert [each.run_id for each in effects.rejections] == ["late"]
    assert said(loaded.step(request, driver.now_ms)) == said(effects)
