"""Faults reported elsewhere: a test each, by id. Those that need a real Kafka are listed with the file they are in."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.core import counts, reasons
from streams.core.effects import Dispatch, Effects
from streams.core.inputs import Completion
from streams.core.policy import Leases, Limits, TenantRules
from streams.core.policy_check import parse_policy
from streams.core.policy_problems import PolicyInvalid
from streams.core.shard import Shard
from streams.errors import BadRecord
from streams.simulate.pool import play
from streams.simulate.workload import Arrival, in_order
from streams.wire import decode_completion, decode_request
from tests.assertions import assert_drained
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.conformance.cases import all_faults
from tests.drivers import Driver
from tests.simulation.core_scheduler import CoreScheduler

LEASES = Leases(lease_ms=30_000, max_lease_ms=60_000, max_attempts=2, backoff_ms=0)

# Those that need a real Kafka, each with the test that has its id in its name.
ON_KAFKA = {
    "43": "test_bad_input_offsets.py",
    "45": "test_bad_input_offsets.py",
    "47": "test_bad_input_offsets.py",  # and below
    "51": "test_bad_input_offsets.py",
    "53": "test_bad_input_offsets.py",
    "55": "test_rebalance.py",
    "59": "test_bad_input_offsets.py",
    "61": "test_bad_input_records.py",
    "63": "test_bad_input_records.py",
    "65": "test_bad_input_records.py",
    "67": "test_bad_input_records.py",
    "69": "test_bad_input_offsets.py",
    "75": "test_bad_input_records.py",  # and below
}
INTEGRATION = Path(__file__).parents[1] / "integration"


def test_every_fault_is_a_test() -> None:
    tested = {name.removeprefix("test_fault_")[:2] for name in globals() if name.startswith("test_fault_")}
    assert tested | ON_KAFKA.keys() == all_faults().keys()


@pytest.mark.parametrize(("fault", "file"), ON_KAFKA.items(), ids=ON_KAFKA.keys())
def test_a_fault_that_needs_kafka_has_its_test_there(fault: str, file: str) -> None:
    tree = ast.parse((INTEGRATION / file).read_text(encoding="utf-8"))
    names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
    assert len([name for name in names if name.startswith(f"test_fault_{fault}_")]) == 1


def _silence(driver: Driver, dispatch: Dispatch) -> Effects:
    del dispatch
    return driver.step(after_ms=30_000)


def _dead_letter(driver: Driver, dispatch: Dispatch) -> Effects:
    driver.step(make_report(dispatch, "failed", 100, retryable=True))
    return driver.step(make_report(driver.dispatches[-1], "failed", 100, retryable=True))


def _cancel(driver: Driver, dispatch: Dispatch) -> Effects:
    driver.step(make_cancel("a", "r1"))
    return driver.step(make_report(dispatch, "failed", 100))


ROUTES: dict[str, tuple[Callable[[Driver, Dispatch], Effects], int]] = {
    "succeeded": (lambda driver, dispatch: driver.step(make_report(dispatch, "succeeded", 100)), 100),
    "failed": (lambda driver, dispatch: driver.step(make_report(dispatch, "failed", 100)), 100),
    "timeout": (_silence, 0),
    "dead letter": (_dead_letter, 200),
    "cancel": (_cancel, 100),
    "returned": (lambda driver, dispatch: driver.step(make_report(dispatch, "returned")), 0),
}


@pytest.mark.parametrize(("route", "spent"), ROUTES.values(), ids=ROUTES.keys())
def test_fault_01_every_route_settles_the_reservation(route: Callable[[Driver, Dispatch], Effects], spent: int) -> None:
    driver = Driver(make_policy(leases=LEASES, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "r1", cost=1_000)
    route(driver, driver.dispatches[0])
    driver.step(make_cancel("a", "r1"))  # whatever came back is taken out again
    for dispatch in driver.dispatches[1:]:
        driver.step(make_report(dispatch, "returned"))
    assert driver.flow("a").actual == spent
    assert_drained(driver.shard)


def test_fault_03_a_redelivered_run_is_not_charged_again() -> None:
    """Charged once for each real attempt: the redelivered request is a duplicate, the second report unknown."""
    driver = Driver(make_policy())
    driver.submit("a", "r1")
    report = make_report(driver.dispatches[0], "succeeded", 300)
    driver.step(report)
    assert driver.submit("a", "r1").rejections[0].reason == reasons.DUPLICATE
    assert driver.step(report).counts == {counts.UNKNOWN: 1}
    assert driver.flow("a").actual == 300


def test_fault_05_what_is_refused_costs_nothing() -> None:
    driver = Driver(make_policy(runs=1, rules={"a": TenantRules(max_queued_runs=1)}))
    driver.submit("a", "r1")
    driver.submit("a", "r2")
    for number in range(50):
        assert driver.submit("a", f"x{number}").rejections
    assert driver.flow("a").charged == 100
    driver.succeed(driver.dispatches[0])
    driver.succeed(driver.dispatches[1])
    assert driver.submit("a", "good").dispatches


def test_fault_07_the_slot_is_held_until_the_end_not_until_the_start() -> None:
    driver = Driver(make_policy(runs=1, leases=LEASES))
    driver.submit("a", "r1")
    driver.step(make_report(driver.dispatches[0], "started"))
    for _ in range(6):
        driver.step(make_report(driver.dispatches[0], "heartbeat", 10), after_ms=10_000)
        assert not driver.submit("b", f"b{driver.now_ms}").dispatches
    assert driver.flow("a").charged == 100
    assert driver.succeed(driver.dispatches[0]).dispatches


def test_fault_09_a_negative_usage_is_refused_before_it_counts() -> None:
    value = b'{"tenant":"a","run_id":"r1","attempt":1,"status":"succeeded","tokens":-100}'
    with pytest.raises(BadRecord):
        decode_completion(b"a", value, 1)


def test_fault_11_usage_is_one_total_from_which_nothing_is_derived() -> None:
    """Details that do not add up are fields that nobody knows: passed over. Without a total the estimate stands."""
    details = b'"total":50,"reasoning":80,"usage":{"completion_tokens":50,"reasoning_tokens":80}'
    driver = Driver(make_policy())
    driver.submit("a", "r1", "r2", cost=100)
    for position, (run_id, tokens, actual) in enumerate((("r1", b'"tokens":50,', 50), ("r2", b"", 100))):
        head = b'{"tenant":"a","run_id":"%s","attempt":1,"status":"succeeded",' % run_id.encode()
        report = decode_completion(b"a", head + tokens + details + b"}", position)
        before = driver.flow("a").actual
        driver.step(report)
        assert driver.flow("a").actual - before == actual


def test_fault_13_a_weight_of_zero_is_refused_by_name() -> None:
    with pytest.raises(PolicyInvalid, match=r"tenants\.a\.weight"):
        parse_policy({"tenants": {"a": {"weight": 0}, "b": {"weight": 1}}})


def test_fault_15_a_negative_weight_is_refused_and_the_old_one_stays() -> None:
    """A policy is made whole by the check; the core is never handed half of one."""
    driver = Driver(make_policy(runs=1, weights={"a": 3}))
    driver.submit("a", "r1", "r2")
    with pytest.raises(PolicyInvalid, match=r"tenants\.a\.weight"):
        driver.set_policy(parse_policy({"tenants": {"a": {"weight": -7}}}))
    assert driver.flow("a").weight == 3


def test_fault_17_a_new_weight_binds_on_what_is_queued() -> None:
    driver = Driver(make_policy(runs=1))
    items = [make_submit(t, f"{t}{n}", position=driver.position()) for t in ("a", "b") for n in range(100)]
    driver.step(*items)
    driver.set_policy(make_policy(runs=1, weights={"a": 9}))
    for _ in range(41):
        driver.succeed(driver.dispatches[-1])
    seen = Counter(dispatch.tenant for dispatch in driver.dispatches[2:])
    assert seen == {"a": 36, "b": 4}


def test_fault_19_a_long_idle_time_leaves_a_sound_state() -> None:
    driver = Driver(make_policy(runs=1))
    driver.submit("a", "r1")
    driver.succeed(driver.dispatches[0], tokens=10**12)
    driver.submit("b", "b1", cost=10**9)
    driver.succeed(driver.dispatches[-1], after_ms=10 * 86_400_000)
    # b came in the round that a was served in, and its run took the 10^7 rounds after it: a's debt faded by 100 in each
    assert driver.flow("a").deficit == -(10**12) + 100 + 10**7 * 100
    assert driver.submit("a", "r2").dispatches  # nobody else has work: its debt keeps nobody waiting


def test_fault_21_what_one_did_not_use_goes_to_the_others_and_is_not_paid_back() -> None:
    """For a while `a` asks for a tenth; then for more than there is. From then on half each, from the first on."""
    runs = [Arrival(at, "a", f"a{at}", "flow", 100, 100, 100) for at in range(0, 10_000, 1_000)]
    runs += [Arrival(10_000, "a", f"late{n}", "flow", 100, 100, 100) for n in range(100)]
    runs += [Arrival(0, "b", f"b{n}", "flow", 100, 100, 100) for n in range(250)]
    served = play(in_order(runs), CoreScheduler(make_policy(quantum=100, runs=1)), slots=1)

    def begun(tenant: str, since: int, until: int) -> int:
        return sum(run.arrival.tenant == tenant and since <= run.started_ms < until for run in served)

    assert (begun("a", 0, 10_000), begun("b", 0, 10_000)) == (10, 90)
    assert abs(begun("a", 10_000, 12_000) - begun("b", 10_000, 12_000)) <= 1
    assert abs(begun("a", 10_000, 20_000) - begun("b", 10_000, 20_000)) <= 1


def test_fault_23_fairness_is_by_tenant_not_by_any_other_key() -> None:
    driver = Driver(make_policy(runs=1))
    requests = [make_submit("a", f"a{n}", position=driver.position(), workflow=f"key{n % 100}") for n in range(200)]
    driver.step(*requests, *driver.requests("b", [f"b{n}" for n in range(10)]))
    for _ in range(19):
        driver.succeed(driver.dispatches[-1])
    assert Counter(dispatch.tenant for dispatch in driver.dispatches) == {"a": 10, "b": 10}


def test_fault_25_fifo_is_by_offset_and_a_cap_holds_when_there_is_room() -> None:
    rules = {tenant: TenantRules(max_runs_in_flight=2) for tenant in "abc"}
    driver = Driver(make_policy(runs=50, rules=rules))
    driver.submit("a", *[f"r{n:03}" for n in range(100)], submitted_ms=77)
    done = 0
    while done < len(driver.dispatches):
        assert driver.flow("a").flight_runs <= 2
        driver.succeed(driver.dispatches[done])
        done += 1
    assert driver.served() == [f"r{n:03}" for n in range(100)]


def test_fault_27_a_wide_run_is_not_passed_over_for_ever() -> None:
    """It comes when four small ones are in flight and b's next visit has begun; then it saves for four rounds."""
    driver = Driver(make_policy(quantum=2, runs=None, tokens=8))
    driver.submit("b", *[f"b{n}" for n in range(100)], cost=2)
    driver.submit("a", "wide", cost=8)
    driver.serve_all()
    assert driver.served().index("wide") == 4 + 1 + 4


def test_fault_29_small_shares_are_not_rounded_away() -> None:
    """Usage of 1 against 3 out of ten million: the order still follows."""
    driver = Driver(make_policy(quantum=1, runs=1))
    driver.submit("huge", "h", cost=10**7)
    driver.step(*driver.requests("three", ["t1", "t2"], cost=3), *driver.requests("one", ["o1", "o2"], cost=1))
    assert driver.serve_all() == ["h", "o1", "o2", "t1", "t2"]


def test_fault_31_a_timeout_frees_the_slot_before_the_retry() -> None:
    driver = Driver(make_policy(runs=1, leases=LEASES, rules={"a": TenantRules(max_runs_in_flight=1)}))
    driver.submit("a", "r1")
    effects = driver.step(after_ms=30_000)
    assert [(dispatch.run_id, dispatch.attempt) for dispatch in effects.dispatches] == [("r1", 2)]


def test_fault_33_the_first_end_wins_and_the_second_is_only_counted() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1")
    driver.step(after_ms=30_000)
    first, second = driver.dispatches
    assert (first.attempt, second.attempt) == (1, 2)
    effects = driver.step(make_report(first, "succeeded", 90), after_ms=20_000)
    assert [revoke.attempt for revoke in effects.revokes] == [2]
    assert driver.step(make_report(second, "succeeded", 80)).counts == {}
    assert driver.step(make_report(second, "succeeded", 80)).counts == {counts.UNKNOWN: 1}
    assert driver.flow("a").actual == 170


def test_fault_35_a_failed_run_is_served_again_by_the_next_owner() -> None:
    driver = Driver(make_policy(leases=LEASES))
    driver.submit("a", "r1")
    driver.take_over()
    effects = driver.step(after_ms=30_000)
    assert [(dispatch.run_id, dispatch.attempt) for dispatch in effects.dispatches] == [("r1", 2)]


@pytest.mark.parametrize(
    "report",
    [
        Completion(0, "a", "r1", 1, "succeeded", 100),
        Completion(0, "a", "nope", 1, "succeeded", 100),
        Completion(0, "b", "r1", 1, "succeeded", 100),
    ],
    ids=["twice", "unknown run", "of another tenant"],
)
def test_fault_37_what_nobody_knows_is_counted_and_dropped(report: Completion) -> None:
    driver = Driver(make_policy())
    driver.submit("a", "r1")
    driver.succeed(driver.dispatches[0])
    before = driver.shard.snapshot().flows
    assert driver.step(report).counts == {counts.UNKNOWN: 1}
    assert driver.shard.snapshot().flows == before


def test_fault_39_a_late_success_takes_the_run_out_of_the_queue() -> None:
    driver = Driver(make_policy(runs=1, leases=LEASES))
    driver.step(*driver.requests("a", ["r1"]), *driver.requests("b", ["b1"]))
    driver.step(after_ms=30_000)  # r1 waits again, behind b1
    assert driver.served() == ["r1", "b1"]
    driver.step(make_report(driver.dispatches[0], "succeeded", 100))
    driver.succeed(driver.dispatches[1])
    assert driver.served() == ["r1", "b1"]
    assert_drained(driver.shard)


def test_fault_41_a_tenant_taken_off_the_policy_is_drained() -> None:
    """What is queued is served and what is in flight finishes, by the default's rules; nothing new comes in."""
    driver = Driver(make_policy(runs=2, weights={"a": 1}, closed=True))
    driver.submit("a", *[f"r{n}" for n in range(7)])
    driver.set_policy(make_policy(runs=2, weights={"b": 1}, closed=True))
    assert driver.submit("a", "new").rejections[0].reason == reasons.UNKNOWN_TENANT
    assert len(driver.serve_all()) == 7
    assert_drained(driver.shard)


def test_fault_47_what_comes_again_is_recognised_by_its_id() -> None:
    driver = Driver(make_policy(runs=1))
    requests = driver.requests("a", [str(n) for n in range(1, 8)])
    driver.step(*requests)
    for _ in range(3):
        driver.succeed(driver.dispatches[-1])
    driver.take_over()
    effects = driver.step(*requests[4:])
    assert [rejection.reason for rejection in effects.rejections] == [reasons.DUPLICATE] * 3
    assert driver.serve_all() == [str(n) for n in range(1, 8)]


def test_fault_49_many_unfinished_runs_are_refused_not_dropped() -> None:
    """State is a row for each run, so it has no map to overflow; a limit says no, with a reason."""
    limits = Limits(max_queued_runs=1_000)
    driver = Driver(make_policy(runs=1, limits=limits))
    effects = driver.step(*driver.requests("a", [str(n) for n in range(1_500)]))
    assert Counter(rejection.reason for rejection in effects.rejections) == {reasons.OVERLOADED: 500}
    assert all(rejection.retry_after_ms for rejection in effects.rejections)
    assert driver.shard.snapshot().shard.queued_runs == 999  # one is in flight


def test_fault_57_rows_of_another_number_of_shards_are_refused() -> None:
    """A tenant would else be scheduled by two shards, with two deficits. The way out is to drain, then migrate."""
    driver = Driver(make_policy(), shard=1, shards=4)
    driver.submit("a", "r1")
    with pytest.raises(ValueError, match="shard 1 of 4, not of shard 1 of 8"):
        Shard.load(1, 8, driver.rows.values())


def test_fault_71_a_limit_for_all_holds_beside_each_ones_own() -> None:
    rules = {f"t{n}": TenantRules(max_queued_runs=10) for n in range(10)}
    driver = Driver(make_policy(runs=1, rules=rules, limits=Limits(max_queued_runs=25)))
    for number in range(10):
        driver.submit(f"t{number}", *[f"r{n}" for n in range(20)])
    assert driver.shard.snapshot().shard.queued_runs == 25
    assert len([key for key in driver.rows if key[0] == "run"]) == 26  # nothing is kept of who was refused


def test_fault_73_a_late_end_is_taken_once() -> None:
    """A worker's clock is never asked. Its end, 1 s late, is taken as the run's end, and charged once."""
    driver = Driver(make_policy(leases=Leases(lease_ms=10_000, max_lease_ms=10_000, backoff_ms=60_000)))
    driver.submit("a", "r1")
    driver.step(after_ms=10_000)
    report = make_report(driver.dispatches[0], "succeeded", 120)
    assert driver.step(report, after_ms=1_000).counts == {counts.LATE: 1, counts.SUCCEEDED: 1}
    assert driver.step(report).counts == {counts.UNKNOWN: 1}
    assert driver.served() == ["r1"]
    assert driver.flow("a").actual == 120


@pytest.mark.parametrize("timestamp", [1_755_933_141_855_875, -1, 0])
def test_fault_75_a_timestamp_that_cannot_be_right_does_no_harm(timestamp: int) -> None:
    value = b'{"tenant":"a","run_id":"r1","workflow":"w"}'
    request = decode_request(b"a", value, 2, timestamp)
    driver = Driver(make_policy())
    assert len(driver.step(request).dispatches) == 1
