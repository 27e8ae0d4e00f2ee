"""A run beside its record: what it waits for, and what lies behind it."""

from __future__ import annotations

import pytest

from streams.core.flows import Flow, Tenant
from streams.core.policy import TenantRules
from streams.core.records import FlowRecord, RetryRecord, RunRecord
from streams.core.runs import Run, RunState


def adopted(**fields: object) -> Run:
    values = {
        "tenant": "a",
        "run_id": "r1",
        "workflow": "flow",
        "class_": "default",
        "position": 1,
        "estimate": 10,
        "max_tokens": None,
        "deadline_ms": None,
        "max_attempts": 3,
        "lease_ms": 100,
        "submitted_ms": 0,
        "not_before_ms": 0,
        "body": b"",
    }
    flow = Flow(FlowRecord(class_="default", tenant="a", place=0), Tenant("a", TenantRules()), quantum=1)
    return Run.adopt(RunRecord(**(values | fields)), flow)  # type: ignore[arg-type]


def test_an_adopted_run_has_no_attempt_behind_it() -> None:
    run = adopted(not_before_ms=70)
    assert (run.state, run.attempt, run.tries, run.ready_ms) == (RunState.QUEUED, 0, 0, 70)
    assert not run.retried


@pytest.mark.parametrize(
    ("state", "deadline", "ready_due", "deadline_due"),
    [
        (RunState.QUEUED, None, None, None),
        (RunState.QUEUED, 90, None, 90),
        (RunState.DELAYED, None, 70, None),
        (RunState.DELAYED, 90, 70, 90),
        (RunState.IN_FLIGHT, 90, None, None),
        (RunState.ENDED, 90, None, None),
    ],
)
def test_what_it_waits_for(
    state: RunState, deadline: int | None, ready_due: int | None, deadline_due: int | None
) -> None:
    run = adopted(not_before_ms=70, deadline_ms=deadline)
    run.state = state
    assert (run.ready_due_ms(), run.deadline_due_ms()) == (ready_due, deadline_due)


def test_the_retry_row_leaves_out_the_attempt_in_flight() -> None:
    run = adopted()
    run.attempt, run.tries, run.ready_ms, run.lost = 3, 2, 50, {1: 8}
    assert run.retry_record() == RetryRecord("a", "r1", attempt=3, tries=2, ready_ms=50, lost={1: 8})
    run.state = RunState.IN_FLIGHT
    assert run.retry_record() == RetryRecord("a", "r1", attempt=2, tries=1, ready_ms=50, lost={1: 8})


def test_resuming_takes_over_what_the_row_says() -> None:
    run = adopted()
    row = RetryRecord("a", "r1", attempt=3, tries=2, ready_ms=50, lost={1: 8})
    run.resume(row)
    assert run.retried
    assert run.retry_record() == row
