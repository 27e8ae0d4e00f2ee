from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from streams import clock
from streams.client.engine import Engine
from streams.client.functions import Functions
from streams.client.intake import Taken
from streams.client.reports import Reports
from streams.client.run import Run
from streams.client.sender import Sender
from streams.client.verdicts import DEADLINE, REVOKED, HandBack
from streams.core.inputs import Completion
from streams.errors import ConfigError, Unavailable
from streams.wire import Assignment, Revocation, decode_completion
from tests.unit.client.fakes import WAIT_S, FakeIntake, FakeProducer, make_assignment, make_revocation


def start(*assignments: Assignment) -> Taken:
    return Taken(list(assignments), [], [])


def revoke(*revocations: Revocation) -> Taken:
    return Taken([], [], list(revocations))


class Rig:
    """An engine between an intake and a producer of the test's."""

    def __init__(self, *batches: Taken, concurrency: int = 4, announce: bool = True) -> None:
        self.intake = FakeIntake(*batches)
        self.producer = FakeProducer()
        self.functions = Functions()
        self.engine = Engine(
            intake=self.intake,
            reports=Reports(Sender(self.producer, queue_wait_s=0.01), "completions", "w1"),
            functions=self.functions,
            concurrency=concurrency,
            announce=announce,
        )

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.engine.turn(0.01)

    def reports(self) -> list[Completion]:
        """What was reported, as the scheduler reads it; keyed by tenant."""
        found = []
        for topic, key, value in self.producer.sent:
            report = decode_completion(key, value, 0)
            assert topic == "completions"
            assert key.decode() == report.tenant
            found.append(report)
        return found

    def told(self) -> list[tuple[str, str]]:
        return [(report.run_id, report.status) for report in self.reports()]

    def wait_for(self, *expected: tuple[str, str]) -> None:
        """Wait until exactly this was reported, in this order."""
        clock.wait_until(lambda: len(self.producer.sent) >= len(expected), WAIT_S, what=f"reports {expected}")
        assert self.told() == list(expected)


@contextmanager
def rig(*batches: Taken, concurrency: int = 4, announce: bool = True) -> Iterator[Rig]:
    rig = Rig(*batches, concurrency=concurrency, announce=announce)
    try:
        yield rig
    finally:
        rig.engine.drain(lambda _: False)


def succeed(_: Run) -> int:
    return 5


async def for_ever(_: Run) -> None:
    await asyncio.Event().wait()


def test_a_run_is_started_settled_and_its_end_reported() -> None:
    with rig(start(make_assignment(attempt=2))) as r:
        r.functions.add(None, succeed)
        r.turn()
        r.wait_for(("r1", "started"), ("r1", "succeeded"))
        assert r.reports()[1] == Completion(0, "acme", "r1", 2, "succeeded", tokens=5, worker="w1")
        assert r.intake.settled == 1


def test_the_start_is_on_its_way_before_the_record_is_accepted() -> None:
    with rig(start(make_assignment())) as r:
        r.functions.add(None, for_ever)
        sent_at_settle: list[int] = []
        r.intake.settle = lambda: sent_at_settle.append(len(r.producer.sent))  # type: ignore[method-assign]
        r.turn()
        assert sent_at_settle == [1]


def test_reports_echo_the_shard() -> None:
    with rig(start(make_assignment())) as r:
        r.functions.add(None, succeed)
        r.turn()
        r.wait_for(("r1", "started"), ("r1", "succeeded"))
        assert all(b'"shard":3' in value for _, _, value in r.producer.sent)


def test_starts_can_be_left_unsaid() -> None:
    with rig(start(make_assignment()), announce=False) as r:
        r.functions.add(None, succeed)
        r.turn()
        r.wait_for(("r1", "succeeded"))


def test_each_workflow_has_its_function_and_the_rest_the_default() -> None:
    with rig(start(make_assignment("a", workflow="x"), make_assignment("b", workflow="y")), announce=False) as r:
        r.functions.add("x", lambda _: 1)
        r.functions.add(None, lambda _: 2)
        r.turn()
        clock.wait_until(lambda: len(r.producer.sent) == 2, WAIT_S)
        assert {report.run_id: report.tokens for report in r.reports()} == {"a": 1, "b": 2}


def test_two_functions_for_one_workflow_are_a_mistake() -> None:
    functions = Functions()
    functions.add("x", succeed)
    with pytest.raises(ConfigError, match="has a function already"):
        functions.add("x", succeed)


def test_a_workflow_without_a_function_fails_and_may_be_tried_elsewhere() -> None:
    with rig(start(make_assignment(workflow="unheard"))) as r:
        r.functions.add("x", succeed)
        r.turn()
        [report] = r.reports()
        assert (report.status, report.retryable, report.tokens) == ("failed", True, 0)
        assert "'unheard'" in (report.error or "")


def test_no_more_runs_than_the_limit_are_in_progress() -> None:
    with rig(*[start(make_assignment(f"r{n}")) for n in range(3)], concurrency=2) as r:
        r.functions.add(None, for_ever)
        r.turn(4)
        assert r.intake.rooms == [2, 1, 0, 0]
        assert len(r.engine.attempts) == 2


def test_an_attempt_handed_out_again_while_in_progress_is_not_started_again() -> None:
    with rig(start(make_assignment()), start(make_assignment())) as r:
        r.functions.add(None, for_ever)
        r.turn(2)
        assert r.told() == [("r1", "started")]
        assert r.intake.settled == 2


def test_a_passed_deadline_is_not_begun() -> None:
    with rig(start(make_assignment(deadline_ms=clock.now_ms() - 1))) as r:
        r.functions.add(None, succeed)
        r.turn()
        [report] = r.reports()
        assert (report.status, report.retryable, report.tokens, report.error) == ("failed", False, 0, "deadline")


def test_what_nobody_had_room_for_is_handed_back() -> None:
    with rig(Taken([], [make_assignment()], [])) as r:
        r.functions.add(None, succeed)
        r.turn()
        assert r.told() == [("r1", "returned")]


def test_a_run_handed_back_by_its_function_is_returned_unspent() -> None:
    def refuse(run: Run) -> None:
        run.spent(3)
        raise HandBack

    with rig(start(make_assignment()), announce=False) as r:
        r.functions.add(None, refuse)
        r.turn()
        r.wait_for(("r1", "returned"))
        assert r.reports()[0].tokens is None


def test_a_revoked_coroutine_is_cancelled_and_its_tokens_reported() -> None:
    began = threading.Event()

    async def work(run: Run) -> None:
        run.spent(42)
        began.set()
        await for_ever(run)

    with rig(start(make_assignment()), revoke(make_revocation()), announce=False) as r:
        r.functions.add(None, work)
        r.turn()
        assert began.wait(WAIT_S)
        r.turn()
        r.wait_for(("r1", "failed"))
        [report] = r.reports()
        assert (report.tokens, report.retryable, report.error) == (42, False, REVOKED)


def test_whoever_else_says_so_a_coroutine_is_cancelled_once() -> None:
    began, cleaning, may_end = threading.Event(), threading.Event(), threading.Event()

    async def work(run: Run) -> None:
        began.set()
        try:
            await for_ever(run)
        finally:
            cleaning.set()
            await asyncio.to_thread(may_end.wait, WAIT_S)
            run.spent(42)

    # A share group hands a revocation to any worker, perhaps to this one, which hears of it from the topic as well.
    with rig(start(make_assignment()), revoke(make_revocation()), revoke(make_revocation()), announce=False) as r:
        r.functions.add(None, work)
        r.turn()
        assert began.wait(WAIT_S)
        r.turn()
        assert cleaning.wait(WAIT_S)
        r.turn()
        r.engine.revoke(make_revocation())
        [run] = r.engine.attempts.snapshot()
        r.engine.abandon(run, DEADLINE)
        may_end.set()
        r.wait_for(("r1", "failed"))
        [report] = r.reports()
        assert (report.tokens, report.error) == (42, REVOKED)


def test_a_revoked_plain_function_is_told_when_it_looks() -> None:
    began, go_on = threading.Event(), threading.Event()

    def work(run: Run) -> None:
        began.set()
        go_on.wait(WAIT_S)
        run.check()

    with rig(start(make_assignment()), announce=False) as r:
        r.functions.add(None, work)
        r.turn()
        assert began.wait(WAIT_S)
        r.engine.revoke(make_revocation())
        go_on.set()
        r.wait_for(("r1", "failed"))
        assert r.reports()[0].error == REVOKED


def test_a_plain_function_that_does_not_look_may_succeed_all_the_same() -> None:
    go_on = threading.Event()
    with rig(start(make_assignment()), announce=False) as r:
        r.functions.add(None, lambda _: int(go_on.wait(WAIT_S)))
        r.turn()
        r.engine.revoke(make_revocation())
        go_on.set()
        r.wait_for(("r1", "succeeded"))


def test_another_attempt_is_not_meant_by_a_revocation() -> None:
    with rig(start(make_assignment(attempt=2)), announce=False) as r:
        r.functions.add(None, for_ever)
        r.turn()
        r.engine.revoke(make_revocation(attempt=1))
        [run] = r.engine.attempts.snapshot()
        assert run.unwanted is None


def test_an_attempt_revoked_before_it_comes_is_not_begun() -> None:
    with rig(revoke(make_revocation()), start(make_assignment())) as r:
        r.functions.add(None, succeed)
        r.turn(2)
        assert r.told() == [("r1", "returned")]


def test_a_drain_lets_runs_end() -> None:
    go_on = threading.Event()
    r = Rig(start(make_assignment()), announce=False)
    r.functions.add(None, lambda _: int(go_on.wait(WAIT_S)))
    r.turn()

    def wait(attempts: object) -> bool:
        assert attempts is r.engine.attempts
        assert r.intake.closed
        go_on.set()
        return r.engine.attempts.wait_until_none(WAIT_S)

    r.engine.drain(wait)
    assert r.told() == [("r1", "succeeded")]


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_drain_hands_back_what_does_not_end_and_hears_of_it_no_more(kind: str) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def plain(run: Run) -> int:
        began.set()
        go_on.wait(WAIT_S)
        ended.set()
        return len(run.tenant)

    async def coroutine(_: Run) -> int:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    functions: dict[str, Callable[..., object]] = {"plain": plain, "coroutine": coroutine}
    r = Rig(start(make_assignment()), announce=False)
    r.functions.add(None, functions[kind])  # type: ignore[arg-type] # one of the two kinds
    r.turn()
    assert began.wait(WAIT_S)
    r.engine.drain(lambda _: False)
    go_on.set()
    assert ended.wait(WAIT_S)
    assert r.told() == [("r1", "returned")]


def test_a_report_that_cannot_be_queued_stops_the_worker() -> None:
    go_on = threading.Event()
    with rig(start(make_assignment())) as r:
        r.functions.add(None, lambda _: int(go_on.wait(WAIT_S)))
        r.turn()
        r.producer.room, r.producer.stuck = 0, True
        go_on.set()
        clock.wait_until(lambda: r.engine.failure is not None, WAIT_S)
        assert isinstance(r.engine.failure, Unavailable)


def test_usage_that_no_run_can_have_is_left_out_and_the_run_still_ends() -> None:
    with rig(start(make_assignment()), announce=False) as r:
        r.functions.add(None, lambda _: 10**15)
        r.turn()
        r.wait_for(("r1", "succeeded"))
        [report] = r.reports()
        assert report.tokens is None
        assert "tokens" in (report.error or "")
