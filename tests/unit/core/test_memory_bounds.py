"""Whatever is sent, a shard holds no more than its policy states: rows and objects are counted, not seconds.

Each flood goes on for many times the limits that it meets, and what the shard holds is counted after every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from streams.core.inputs import FAILED, HEARTBEAT, SUCCEEDED, Completion, Input, SetPolicy
from streams.core.invariants import check
from streams.core.lost import MAX_OF_PAGE
from streams.core.policy import Leases, Limits, Memory, Overload, Policy
from streams.core.records import Key, Record
from streams.core.shard import Shard
from tests.assertions import rows_of, write
from tests.builders import make_cancel, make_policy, make_report, make_submit
from tests.drivers import START_MS

FLOWS, HISTORIES, ENDED, QUEUED, BYTES, WINDOW = 50, 60, 40, 100, 20_000, 8
STEPS, EACH = 400, 10
SLACK = 1_024 + 2 * EACH  # what heaps may hold of what is over before they are tidied, see `_SLACK` there


def limited(overload: Overload) -> Policy:
    policy = make_policy(
        runs=WINDOW,
        classes=("high", "low"),
        limits=Limits(max_queued_runs=QUEUED, max_queued_bytes=BYTES, overload=overload),
        memory=Memory(flows=FLOWS, histories=HISTORIES, tenant_histories=5, ended_runs=ENDED, ended_ms=10**9),
    )
    leases = Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=10**9, max_attempts=2, backoff_ms=10**6)
    return replace(policy, leases=replace(leases, max_backoff_ms=10**6))


Flood = Callable[[int], Iterator[Input]]


def tenants_in_debt(number: int) -> Iterator[Input]:
    """Every run is of a tenant nobody has seen, and costs a hundred times its estimate."""
    yield make_submit(f"tenant-{number}", "r", position=number, cost=10, workflow=f"w{number}", body=bytes(100))


def workflow_names(number: int) -> Iterator[Input]:
    """Few tenants, each run of a workflow nobody has seen."""
    yield make_submit(f"tenant-{number % 3}", f"r{number}", position=number, workflow=f"w{number}")


def cancelled(number: int) -> Iterator[Input]:
    """Nearly every run is taken back, queued, delayed or in flight; its lease and its deadline are far away."""
    class_, waits = ("high", "low")[number % 3 > 0], START_MS + (number % 2) * 10**8
    yield make_submit(
        "a",
        f"r{number}",
        position=number,
        class_=class_,
        not_before_ms=waits,
        deadline_ms=START_MS + 10**9,
        lease_ms=10**9,
    )
    if number % 20:
        yield make_cancel("a", f"r{number - 1}")


def ids(number: int) -> Iterator[Input]:
    """Runs, cancels and reports of what never was."""
    yield make_cancel(f"tenant-{number}", f"r{number}")
    yield Completion(0, f"tenant-{number}", f"r{number}", number, SUCCEEDED, 5)
    yield make_submit("a", f"r{number}", position=number, cost=1)


def large(number: int) -> Iterator[Input]:
    """Payloads that only a few of fit, of tenants that take turns."""
    yield make_submit(f"tenant-{number % 7}", f"r{number}", position=number, body=bytes(number % 9_000))


def classes_and_names(number: int) -> Iterator[Input]:
    """Tenants that come once, in both classes, with runs that wait for another day or are refused at once."""
    for place, class_ in enumerate(("high", "low", "nowhere")):
        waits, position = START_MS + 10**9 if number % 7 == 0 else None, 3 * number + place
        yield make_submit(f"t{number}", f"r{place}", position=position, class_=class_, not_before_ms=waits)


@pytest.mark.parametrize("overload", ["refuse", "drop_longest"])
@pytest.mark.parametrize(
    "flood",
    [tenants_in_debt, workflow_names, cancelled, ids, large, classes_and_names],
    ids=lambda flood: flood.__name__,
)
def test_what_a_shard_holds_is_bounded(flood: Flood, overload: Overload) -> None:
    shard, now, number = Shard(0, 1), START_MS, 0
    rows: dict[Key, Record] = {}
    inputs: list[Input] = [SetPolicy(0, limited(overload))]
    most: Counter[str] = Counter()
    for step in range(STEPS):
        for _ in range(EACH):
            number += 1
            inputs += flood(number)
        now += 7
        effects = shard.step(inputs, now)
        write(rows, effects)
        inputs = [  # one in five is never heard of, one in five once: their leases run out
            make_report(each, *WAYS[each.seq % 4], retryable=True) for each in effects.dispatches if each.seq % 5
        ]
        held = objects(shard)
        assert held == {name: min(count, BOUNDS[name]) for name, count in held.items()}
        most |= Counter(held)
        if step % (STEPS // 4) == 0:
            check(shard)
            assert rows_of(shard) == rows
    assert [name for name in MEETS[flood.__name__] if most[name] < BOUNDS[name] - LARGEST.get(name, 0)] == []
    kinds = Counter(key[0] for key in rows)
    assert kinds["flow"] <= FLOWS
    assert kinds["history"] <= HISTORIES
    assert kinds["ended"] <= ENDED
    assert kinds["run"] <= QUEUED + WINDOW
    assert kinds["retry"] <= kinds["run"]
    assert kinds["flight"] <= WINDOW
    assert sum(kinds.values()) - kinds["flow"] - kinds["history"] - kinds["ended"] - kinds["run"] <= (
        kinds["retry"] + kinds["flight"] + kinds["ring"] + 2  # the shard and the policy
    )


WAYS = [(SUCCEEDED, 1_000), (FAILED, 50), (HEARTBEAT, 5), (SUCCEEDED, 10)]
MEETS = {  # the bounds that a flood runs into: else it would prove little
    "tenants_in_debt": ("flows", "tenants"),
    "workflow_names": ("runs", "flights"),
    "cancelled": ("ended", "revoked"),
    "ids": ("runs", "flights", "ended"),
    "large": ("bytes", "ended"),
    "classes_and_names": ("flows",),
}
LARGEST = {"bytes": 9_000, "ended": EACH + WINDOW}  # what may be free and still not fit: a payload, a page
BOUNDS = {
    "flows": FLOWS,
    "tenants": FLOWS,
    "runs": QUEUED + WINDOW,
    "flights": WINDOW,
    "histories": HISTORIES,
    "ended": ENDED,
    "pages": ENDED,
    "lost": MAX_OF_PAGE,
    "bytes": BYTES,
    "leases": 2 * WINDOW + SLACK,
    "delays": 2 * QUEUED + SLACK,
    "deadlines": 2 * QUEUED + SLACK,
    "ring": 2 * FLOWS + SLACK,
    "resting": 2 * FLOWS + SLACK,
    "backlogs": 4 * FLOWS + SLACK,
    "revoked": WINDOW,
    "removed": 0,
}


def objects(shard: Shard) -> dict[str, int]:
    """Count what the state holds, what is out of date and not yet tidied included."""
    state = shard._state
    return {
        "flows": state.known_flows,
        "tenants": len(state.tenants),
        "runs": sum(len(tenant.runs) for tenant in state.tenants.values()),
        "flights": len(state.flights),
        "histories": len(state.estimator.histories),
        "ended": len(state.ended),
        "pages": len(state.pages),
        "lost": len(state.lost),
        "bytes": sum(len(run.body) for tenant in state.tenants.values() for run in tenant.runs.values()),
        "leases": len(state.leases._heap),
        "delays": len(state.delays._heap),
        "deadlines": len(state.deadlines._heap),
        "ring": max(len(ring._heap) for ring in state.rings.values()),
        "resting": len(state.resting) if state.resting is not None else 0,
        "backlogs": max(len(each._heap) if each is not None else 0 for each in (state.backlogs, state.heaviest)),
        "revoked": len(state.revoked),
        "removed": len(state.removed),
    }
