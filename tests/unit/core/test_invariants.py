"""Each check can fail: a shard is corrupted in one way, and the check for it says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streams.core.flows import NOT_IN_HEAP, Flow
from streams.core.invariants import InvariantBroken, check
from streams.core.policy import TenantRules
from streams.core.records import FlowState
from streams.core.ring import Ring
from streams.core.runs import RunState
from streams.core.state import State
from tests.builders import make_cancel, make_policy
from tests.drivers import Driver


@pytest.fixture
def driver() -> Driver:
    """Tenants in every state: `current` in its visit, `waits` in the heap, `capped` blocked, `idle` with a debt."""
    rules = {"capped": TenantRules(max_runs_in_flight=1)}
    driver = Driver(make_policy(runs=3, quantum=1_000, rules=rules, classes=("default", "quiet")))
    driver.submit("idle", "i1")
    driver.succeed(driver.dispatches[0], tokens=5_000)
    driver.submit("capped", "c1", "c2")
    driver.submit("current", "v1", "v2", "v3", "v4")
    driver.submit("waits", "w1", "w2")
    driver.step(make_cancel("current", "v1"))
    check(driver.shard)
    return driver


def flow(state: State, tenant: str) -> Flow:
    return state.tenants[tenant].flows[0]


def ring(state: State) -> Ring:
    return state.rings["default"]


def add(what: str, amount: int = 1, tenant: str | None = None) -> Callable[[State], None]:
    """Corrupt a counter of the state, of its window, of a tenant, of a flow or of a queue."""

    def corrupt(state: State) -> None:
        *path, name = what.split(".")
        owner: object = state
        if tenant is not None:
            owner = flow(state, tenant)
            if not hasattr(owner, what.partition(".")[0]):
                owner = state.tenants[tenant]
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, name, getattr(owner, name) + amount)

    return corrupt


def lose_heap_entry(state: State) -> None:
    ring(state)._heap.clear()


def forget_queued_run(state: State) -> None:
    flow(state, "waits").queue._first = None


def miscount_queue(state: State) -> None:
    flow(state, "waits").queue._live += 1


def keep_ended_run(state: State) -> None:
    state.tenants["waits"].runs["w1"].state = RunState.ENDED


def let_deadline_pass(state: State) -> None:
    state.tenants["waits"].runs["w1"].deadline_ms = state.record.now_ms


def bar(state: State) -> None:
    state.tenants["idle"].barred = True


def lose_flight_of_run(state: State) -> None:
    """The totals are right; only the run believes that it is in flight."""
    run = state.tenants["capped"].runs["c1"]
    run.attempt = 7


def undercharge(state: State) -> None:
    flight = state.flights["capped", "c1", 1]
    flight.charged -= 1
    flow(state, "capped").charged -= 1


def forget_revoked(state: State) -> None:
    state.revoked.clear()


def forget_ended(state: State) -> None:
    state.ended.clear()


def idle_with_work(state: State) -> None:
    flow(state, "waits").state = FlowState.IDLE
    ring(state).active -= 1


def idle_in_heap(state: State) -> None:
    idle = flow(state, "idle")
    idle.eligible = 9
    ring(state)._heap.append(9 << 40 | idle.place)


def active_without_work(state: State) -> None:
    flow(state, "idle").state = FlowState.ACTIVE
    ring(state).active += 1


def blocked_with_room(state: State) -> None:
    waits = flow(state, "waits")
    waits.state, waits.eligible = FlowState.BLOCKED, NOT_IN_HEAP
    ring(state).active -= 1


def blocked_in_heap(state: State) -> None:
    capped = flow(state, "capped")
    capped.eligible = 9
    ring(state)._heap.append(9 << 40 | capped.place)


def visited_elsewhere(state: State) -> None:
    ring(state).record.cursor += 1


def visited_without_means(state: State) -> None:
    flow(state, "current").deficit = 0


def turn_has_passed(state: State) -> None:
    waits = flow(state, "waits")
    waits.eligible = ring(state).passed(waits)
    ring(state)._heap.append(waits.eligible << 40 | waits.place)


def eligible_too_early(state: State) -> None:
    flow(state, "waits").deficit -= 10_000


def not_visiting(state: State) -> None:
    ring(state).record.visiting = False


def place_beyond_the_last(state: State) -> None:
    ring(state).record.next_place = 1


def stale_rules(state: State) -> None:
    state.tenants["waits"].rules = TenantRules(weight=9)


def stale_rate(state: State) -> None:
    flow(state, "waits").rate += 1


def no_lease_timer(state: State) -> None:
    state.leases._heap.clear()


def late_lease_timer(state: State) -> None:
    state.leases._heap = [(due + 1, tie, item) for due, tie, item in state.leases._heap]


def other_order(state: State) -> None:
    state.rings = {"unknown": ring(state), **state.rings}


def no_wait_timer(state: State) -> None:
    state.delays._heap.clear()
    state.deadlines._heap.clear()


def seq_behind(state: State) -> None:
    state.record.seq = 0


def figures_at_rest(state: State) -> None:
    state.rings["quiet"].record.max_over = 1


@pytest.mark.parametrize(
    ("corrupt", "what"),
    [
        (add("window.runs"), "window: runs in flight"),
        (add("window.tokens"), "window: tokens in flight"),
        (add("flight_runs", tenant="waits"), "waits: runs in flight"),
        (add("flight_tokens", tenant="waits"), "waits: tokens in flight"),
        (add("queued_runs", tenant="waits"), "waits: queued runs"),
        (add("queued_tokens", tenant="waits"), "waits: queued tokens"),
        (add("queued_runs"), "queued runs of the shard"),
        (add("queue.tokens", tenant="waits"), "waits: tokens in the queue"),
        (add("charged", tenant="idle"), "idle: charged"),
        (add("actual", tenant="idle"), "idle: charged"),
        (add("accrued", 9, tenant="idle"), "idle: earned a round that has not come"),
        (forget_queued_run, "waits: the queue differs"),
        (miscount_queue, "waits: length of the queue"),
        (keep_ended_run, "waits: run w1 has ended"),
        (let_deadline_pass, "waits: run w1 is overdue or not"),
        (bar, "idle: barred, or not, against the policy"),
        (lose_flight_of_run, "capped: run c1 has no attempt"),
        (undercharge, "capped: charged less than the estimate"),
        (forget_revoked, "revoked runs"),
        (forget_ended, "ended runs"),
        (not_visiting, "default: visiting"),
        (lambda state: setattr(ring(state), "active", 0), "default: active flows"),
        (lambda state: setattr(ring(state), "blocked", 0), "default: blocked flows"),
        (add("extra", tenant="waits"), "waits: earns more or less than its rate"),
        (lambda state: ring(state).rerated.append(flow(state, "idle")), "default: a new rate has not been written"),
        (place_beyond_the_last, "place"),
        (lose_heap_entry, "waits: missing from the heap"),
        (idle_with_work, "waits: idle with work"),
        (idle_in_heap, "idle: idle in the heap"),
        (active_without_work, "idle: ACTIVE without work"),
        (blocked_with_room, "waits: BLOCKED but room is True"),
        (blocked_in_heap, "capped: blocked in the heap"),
        (visited_elsewhere, "current: visited elsewhere"),
        (visited_without_means, "current: visited but can't afford its head"),
        (turn_has_passed, "waits: its turn has passed"),
        (eligible_too_early, "waits: eligible before it can afford its head"),
        (add("peak", -1, tenant="capped"), "capped: more in flight than its peak"),
        (add("base", 9_000, tenant="waits"), "waits: owed 9000, more than the bound allows"),
        (add("base", -9_000, tenant="waits"), "waits: owed -9000, less than the bound allows"),
        (add("base", tenant="waits"), "waits: owed 1, which is not its deficit"),
        (add("base", tenant="capped"), "capped: owed 901, which is not its deficit"),
        (figures_at_rest, "quiet: at rest with figures of a bound"),
        (stale_rules, "waits: rules of another policy"),
        (stale_rate, "waits: earns at another rate"),
        (other_order, "classes: not in the policy's order"),
        (no_lease_timer, "no lease timer"),
        (late_lease_timer, "no lease timer"),
        (seq_behind, "ahead of the sequence"),
    ],
)
def test_a_corrupted_shard_is_found_out(driver: Driver, corrupt: Callable[[State], None], what: str) -> None:
    corrupt(driver.shard._state)
    with pytest.raises(InvariantBroken, match=what):
        check(driver.shard)


def test_a_run_that_waits_for_its_time_needs_a_timer(driver: Driver) -> None:
    driver.submit("waits", "later", not_before_ms=driver.now_ms + 50)
    no_wait_timer(driver.shard._state)
    with pytest.raises(InvariantBroken, match="waits: run later has no timer"):
        check(driver.shard)
