"""The door again, over long seeded walks: what needs a long past to go wrong, hypothesis would rarely reach."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streams.core import counts
from streams.core.dispatching import MAX_DISPATCHES
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.core.policy import Estimates, Leases, Limits, Memory, Policy, PriorityClass, TenantRules
from tests.builders import make_policy
from tests.property.test_door import RUNS, Door
from tests.strategies import CLASSES, GROUPS, TENANTS

STATUSES = (STARTED, HEARTBEAT, SUCCEEDED, FAILED, RETURNED)
MOVES = {
    "submit": 10,
    "submit_many": 4,
    "cancel": 2,
    "report": 10,
    "report_all": 1,
    "report_late": 3,
    "report_unknown": 1,
    "cannot_be_written": 1,
    "change_policy": 1,
    "let_pass": 5,
    "until_timer": 3,
    "take_over": 1,
    "fork": 1,
    "nothing_new": 1,
    "refused": 1,
}
NEEDS_ATTEMPTS = {"report", "report_all"}


def random_policy(draw: Random) -> Policy:
    classes = draw.sample(CLASSES, draw.randint(1, 3))
    shares = draw.random() < 0.5
    tenants = draw.sample(TENANTS, draw.choice((2, 4, 4)))
    policy = make_policy(
        quantum=draw.choice((1, 20, 100)),
        runs=draw.choice((None, 2, 5)),
        tokens=draw.choice((50, 500)),
        rules={
            tenant: TenantRules(
                group=draw.choice((None, *GROUPS)),
                weight=draw.randint(1, 4),
                max_runs_in_flight=draw.choice((None, None, 1, 2)),
                max_tokens_in_flight=draw.choice((None, None, 30)),
                max_queued_runs=draw.choice((None, None, 3)),
                paused=draw.random() < 0.05,
            )
            for tenant in tenants
        },
        closed=draw.random() < 0.2,
        estimates=Estimates(source=draw.choice(("history", "hint", "max"))),
        leases=Leases(lease_ms=draw.choice((20, 200)), max_lease_ms=200, backoff_ms=draw.choice((0, 5, 50))),
        limits=Limits(
            max_queued_runs=draw.choice((None, 8)),
            max_queued_bytes=draw.choice((None, 6, 12)),
            overload=draw.choice(("refuse", "drop_longest")),
        ),
        memory=Memory(
            ended_ms=draw.choice((20, 300)),
            ended_runs=draw.choice((0, 3, 100)),
            flows=draw.choice((1_000, 2, 4)),
            histories=draw.randint(2, 5),
            tenant_histories=draw.randint(1, 2),
        ),
    )
    return replace(
        policy,
        between_classes="shares" if shares else "strict",
        classes=tuple(
            PriorityClass(
                name=name,
                weight=draw.randint(1, 4) if shares else 1,
                min_share=0 if shares else draw.choice((0, 5, 30)),
            )
            for name in classes
        ),
        groups={group: draw.randint(1, 4) for group in GROUPS},
        on_removal=draw.choice(("serve", "reject")),
    )


def move(door: Door, draw: Random) -> None:
    """Make one move with random arguments; one that needs an attempt in flight is skipped if there is none."""
    name = draw.choices(tuple(MOVES), tuple(MOVES.values()))[0]
    if name in NEEDS_ATTEMPTS and not door.books.open_attempts:
        return
    if name == "report_late" and not door.driver.dispatches:
        return

    def maybe(low: int, high: int) -> int | None:
        return draw.choice((None, None, draw.randint(low, high)))

    run: dict[str, object] = {"tenant": draw.choice(TENANTS[:3]), "run_id": draw.choice(RUNS)}
    flush: dict[str, object] = {"flush": draw.random() < 0.6}
    said: dict[str, object] = {"status": draw.choice(STATUSES), "tokens": draw.choice((None, draw.randint(0, 100)))}
    after: dict[str, object] = {"after_ms": draw.choice((0, 0, 1, 10, 60, -50))}
    arguments: dict[str, dict[str, object]] = {
        "submit": {
            **run,
            **flush,
            "class_": draw.choice((None, None, *CLASSES)),
            "cost": maybe(1, 200),
            "max_tokens": maybe(0, 40),
            "waits": maybe(-20, 100),
            "lives": maybe(5, 300),
            "max_attempts": maybe(1, 3),
            "lease_ms": maybe(5, 300),
        },
        "submit_many": {"tenant": run["tenant"], "many": draw.randint(2, 6), "cost": draw.randint(1, 60)},
        "cancel": {**run, **flush},
        "report": {
            **said,
            **flush,
            "pick": draw.randrange(1_000),
            "retryable": draw.random() < 0.5,
            "twice": draw.random() < 0.1,
        },
        "report_all": {"status": draw.choice((SUCCEEDED, FAILED)), "tokens": draw.randint(0, 100), **after},
        "report_late": {**said, **flush, "pick": draw.randrange(1_000)},
        "cannot_be_written": {**run, **flush, "limit": 10},
        "report_unknown": {**run, **flush, "attempt": 1},
        "change_policy": {"policy": random_policy(draw), **flush},
        "let_pass": after,
        "take_over": after,
        "refused": {**run, "cost": 5},
    }
    getattr(door, name)(**arguments.get(name, {}))


@pytest.mark.parametrize("seed", range(5))
def test_a_long_history_holds_all_that_a_short_one_does(seed: int) -> None:
    draw = Random(seed)
    door = Door()
    door.begin(policy=random_policy(draw), largest=draw.choice((2, MAX_DISPATCHES)))
    try:
        for _ in range(2_000):
            move(door, draw)
        seen = door.books.counts.copy()
        door.drain()
    finally:
        door.end()
    for what in (
        counts.UNDELIVERABLE,
        counts.RETRIED,
        counts.LOST,
        counts.LATE,
        counts.REVOKED,
        counts.EXPIRED,
        counts.RETURNED,
    ):
        assert seen[what], f"a walk without any run that was {what} proves little"
    assert seen[counts.DISPATCHED] > 200
