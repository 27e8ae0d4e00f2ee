from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator

import pytest

from streams import clock
from streams.client.loop import Loop
from streams.client.run import Run
from streams.client.verdicts import REVOKED, GiveUp, Outcome
from tests.unit.client.fakes import WAIT_S, Ends, make_run


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def loop(ends: Ends) -> Iterator[Loop]:
    loop = Loop(ends)
    yield loop
    loop.close()


async def for_ever(_: Run) -> None:
    await asyncio.Event().wait()


def test_a_function_is_awaited_and_its_end_is_told(loop: Loop, ends: Ends) -> None:
    async def five(_: Run) -> int:
        await asyncio.sleep(0)
        return 5

    loop.start(make_run(1), five)
    assert ends.next() == ("r1", Outcome("succeeded", 5))


def test_thousands_run_at_once_on_one_thread(loop: Loop, ends: Ends) -> None:
    gate = asyncio.Event()
    threads: set[int] = set()

    async def wait(_: Run) -> None:
        threads.add(threading.get_ident())
        await gate.wait()

    async def open_gate(_: Run) -> None:
        gate.set()

    for number in range(3_000):
        loop.start(make_run(number), wait)
    loop.start(make_run(3_000), open_gate)
    assert {ends.next()[1].status for _ in range(3_001)} == {"succeeded"}
    assert len(threads) == 1


@pytest.mark.parametrize("error", [GiveUp("no"), SystemExit(1), KeyboardInterrupt()])
def test_whatever_a_function_raises_ends_the_run_and_not_the_loop(loop: Loop, ends: Ends, error: BaseException) -> None:
    async def fail(_: Run) -> None:
        raise error

    async def succeed(_: Run) -> None:
        return None

    loop.start(make_run(1), fail)
    assert ends.next()[1].status == "failed"
    loop.start(make_run(2), succeed)
    assert ends.next() == ("r2", Outcome("succeeded"))


def test_a_running_function_is_cancelled(loop: Loop, ends: Ends) -> None:
    started = threading.Event()

    async def wait(run: Run) -> None:
        started.set()
        await for_ever(run)

    run = make_run(1)
    loop.start(run, wait)
    assert started.wait(10)
    run.abandon(REVOKED)
    loop.cancel(run)
    assert ends.next() == ("r1", Outcome("failed", error=REVOKED))


def test_a_function_cancelled_before_its_first_step_still_ends(loop: Loop, ends: Ends) -> None:
    blocked, go_on = threading.Event(), threading.Event()

    async def block(_: Run) -> None:
        blocked.set()
        go_on.wait(10)

    loop.start(make_run(0), block)
    assert blocked.wait(10)
    run = make_run(1)
    run.abandon(REVOKED)
    loop.start(run, for_ever)
    loop.cancel(run)  # on its way before the loop can take a step of the run
    go_on.set()
    assert {ends.next()[0], ends.next()[0]} == {"r0", "r1"}


def test_a_function_may_clean_up_when_cancelled(loop: Loop, ends: Ends) -> None:
    async def tidy(run: Run) -> None:
        try:
            await for_ever(run)
        finally:
            run.spent(9)

    run = make_run(1)
    loop.start(run, tidy)
    loop.start(make_run(2), lambda _: asyncio.sleep(0))
    assert ends.next()[0] == "r2"
    run.abandon(REVOKED)
    loop.cancel(run)
    assert ends.next() == ("r1", Outcome("failed", 9, error=REVOKED))


class Tidy:
    """A function that takes as long to clean up as the test lets it, and has spent 9 tokens once it has."""

    def __init__(self) -> None:
        self.started, self.cleaning, self.may_end = threading.Event(), threading.Event(), threading.Event()

    async def __call__(self, run: Run) -> None:
        self.started.set()
        try:
            await for_ever(run)
        finally:
            self.cleaning.set()
            await asyncio.to_thread(self.may_end.wait, WAIT_S)
            run.spent(9)

    def cancelled_on(self, loop: Loop) -> Run:
        """Start it, cancel it, and return when it is cleaning up."""
        run = make_run(1)
        loop.start(run, self.__call__)
        assert self.started.wait(WAIT_S)
        run.abandon(REVOKED)
        loop.cancel(run)
        assert self.cleaning.wait(WAIT_S)
        return run


def test_a_second_cancellation_does_not_break_off_the_cleaning_up(loop: Loop, ends: Ends) -> None:
    tidy = Tidy()
    run = tidy.cancelled_on(loop)
    for _ in range(3):
        loop.cancel(run)
    loop.start(make_run(2), lambda _: asyncio.sleep(0))
    assert ends.next()[0] == "r2"  # so the loop has seen to what came before
    tidy.may_end.set()
    assert ends.next() == ("r1", Outcome("failed", 9, error=REVOKED))


def test_closing_does_not_break_off_the_cleaning_up(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.loop._CANCEL_S", 0.05)
    loop = Loop(ends)
    tidy = Tidy()
    tidy.cancelled_on(loop)
    loop.close()
    clock.wait_until(lambda: loop._closing, WAIT_S)
    tidy.may_end.set()
    assert ends.next() == ("r1", Outcome("failed", 9, error=REVOKED))


def test_a_run_that_comes_again_can_be_cancelled_again(loop: Loop, ends: Ends) -> None:
    for _ in range(2):
        run = make_run(1)
        loop.start(run, for_ever)
        run.abandon(REVOKED)
        loop.cancel(run)
        assert ends.next() == ("r1", Outcome("failed", error=REVOKED))


def test_a_timeout_of_the_functions_own_does_not_pass_for_a_cancellation(loop: Loop, ends: Ends) -> None:
    timed_out = threading.Event()

    async def wait(run: Run) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                try:
                    await for_ever(run)
                finally:
                    timed_out.set()
                    await for_ever(run)

    run = make_run(1)
    loop.start(run, wait)
    assert timed_out.wait(WAIT_S)
    run.abandon(REVOKED)
    loop.cancel(run)
    assert ends.next()[0] == "r1"


def test_closing_leaves_a_function_that_will_not_stop_to_itself(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streams.client.loop._CANCEL_S", 0.05)
    others = set(threading.enumerate())
    loop = Loop(ends)
    [thread] = set(threading.enumerate()) - others
    started, may_end = threading.Event(), threading.Event()

    async def stubborn(_: Run) -> int:
        started.set()
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return 7

    loop.start(make_run(1), stubborn)
    assert started.wait(WAIT_S)
    loop.close()  # which comes back
    assert thread.is_alive()
    may_end.set()
    assert ends.next() == ("r1", Outcome("succeeded", 7))
    thread.join(WAIT_S)
    assert not thread.is_alive()
    del loop
    gc.collect()
    assert not caplog.records  # asyncio's of a task that was dropped


def test_closing_does_not_wait_for_a_function_that_blocks(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.loop._CANCEL_S", 0.05)
    loop = Loop(ends)
    blocked, go_on = threading.Event(), threading.Event()

    async def block(_: Run) -> None:
        blocked.set()
        go_on.wait(WAIT_S)

    loop.start(make_run(1), block)
    assert blocked.wait(WAIT_S)
    loop.close()
    assert ends.queue.empty()
    go_on.set()
    assert ends.next() == ("r1", Outcome("succeeded"))
