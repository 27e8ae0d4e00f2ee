"""The FIFO inside a flow, also under retries and cancels in the middle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.core.fifo import Fifo
from streams.core.flows import Flow, Tenant
from streams.core.policy import TenantRules
from streams.core.records import FlowRecord, RunRecord
from streams.core.runs import Run, RunState

FLOW = Flow(FlowRecord(class_="default", tenant="a", place=0), Tenant("a", TenantRules()), quantum=1)


def make_run(position: int, estimate: int = 1) -> Run:
    return Run.adopt(
        RunRecord(
            tenant="a",
            run_id=f"r{position}",
            workflow="flow",
            class_="default",
            position=position,
            estimate=estimate,
            max_tokens=None,
            deadline_ms=None,
            max_attempts=1,
            lease_ms=1,
            submitted_ms=0,
            not_before_ms=0,
            body=b"",
        ),
        FLOW,
    )


def filled(*positions: int) -> tuple[Fifo, list[Run]]:
    queue, runs = Fifo(), [make_run(position, estimate=position) for position in positions]
    for run in runs:
        queue.put(run)
    return queue, runs


def drained(queue: Fifo) -> list[int]:
    order = []
    while (head := queue.head()) is not None:
        order.append(head.position)
        queue.drop(head, RunState.IN_FLIGHT)
    return order


def test_empty() -> None:
    queue = Fifo()
    assert (len(queue), queue.tokens, queue.head(), list(queue)) == (0, 0, None, [])


def test_runs_leave_in_order_of_position() -> None:
    queue, _ = filled(1, 2, 3)
    assert (len(queue), queue.tokens) == (3, 6)
    assert drained(queue) == [1, 2, 3]
    assert (len(queue), queue.tokens) == (0, 0)


def test_a_retry_goes_back_to_its_old_place() -> None:
    queue, (first, _, _) = filled(1, 2, 3)
    queue.drop(first, RunState.IN_FLIGHT)
    first.state = RunState.QUEUED
    queue.put(first)
    assert drained(queue) == [1, 2, 3]


def test_a_retry_of_the_last_run_finds_an_empty_queue() -> None:
    queue, (only,) = filled(5)
    queue.drop(only, RunState.IN_FLIGHT)
    queue.put(make_run(2))
    assert drained(queue) == [2]


def test_retries_keep_their_order_among_fresh_runs() -> None:
    queue, _ = filled(10, 20)
    for position in (15, 5, 12):
        queue.put(make_run(position))
    assert drained(queue) == [5, 10, 12, 15, 20]


def test_a_run_taken_out_in_the_middle_is_skipped() -> None:
    queue, (_, second, _) = filled(1, 2, 3)
    queue.drop(second, RunState.ENDED)
    assert (len(queue), queue.tokens) == (2, 4)
    assert [run.position for run in queue] == [1, 3]
    assert drained(queue) == [1, 3]


def test_retries_taken_out_are_skipped() -> None:
    queue, _ = filled(10)
    retries = [make_run(position) for position in (1, 2, 3)]
    for run in retries:
        queue.put(run)
    queue.drop(retries[1], RunState.ENDED)
    queue.drop(retries[0], RunState.ENDED)  # the head itself
    assert sorted(run.position for run in queue) == [3, 10]
    assert drained(queue) == [3, 10]


def test_only_dead_retries_left() -> None:
    queue, _ = filled(10)
    retries = [make_run(position) for position in (1, 2)]
    for run in retries:
        queue.put(run)
    for run in reversed(retries):
        queue.drop(run, RunState.ENDED)
    head = queue.head()
    assert head is not None
    assert head.position == 10


def test_what_was_taken_out_holds_no_other_run() -> None:
    """Else a run that is in flight for hours would keep every run that was once queued behind it."""
    queue, runs = filled(1, 2, 3)
    for run in (runs[1], runs[0], runs[2]):
        queue.drop(run, RunState.ENDED)
        assert (run.before, run.after) == (None, None)
    assert queue.last_fresh() is None


def test_cancelling_all_retries_fills_no_memory() -> None:
    queue, _ = filled(5_000)
    queue.put(make_run(0))
    for position in range(1, 2_000):
        run = make_run(position)
        queue.put(run)
        queue.drop(run, RunState.ENDED)
    assert len(queue) == 2
    assert queue._back is not None
    assert len(queue._back) < 100


@given(st.lists(st.tuples(st.sampled_from(("put", "back", "serve", "drop")), st.integers(0, 100))))
def test_it_is_a_sorted_list(moves: list[tuple[str, int]]) -> None:
    queue, model, out, fresh = Fifo(), list[Run](), list[Run](), 0
    for move, pick in moves:
        if move == "put":
            run, fresh = make_run(fresh, estimate=pick), fresh + 1
        elif move == "back" and out:
            run = out.pop(pick % len(out))
            run.state = RunState.QUEUED
        elif move == "drop" and model:
            queue.drop(model.pop(pick % len(model)), RunState.ENDED)
            continue
        elif move == "serve" and model:
            head = queue.head()
            assert head is model.pop(0)
            queue.drop(head, RunState.IN_FLIGHT)
            out.append(head)
            continue
        else:
            continue
        queue.put(run)
        model = sorted([*model, run], key=lambda each: each.position)
    assert (len(queue), queue.tokens) == (len(model), sum(run.estimate for run in model))
    assert drained(queue) == [run.position for run in model]
