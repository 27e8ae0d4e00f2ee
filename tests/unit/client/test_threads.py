from __future__ import annotations

import sys
import threading

import pytest

from streams.client.run import Run
from streams.client.threads import Threads
from streams.client.verdicts import GiveUp, Outcome
from tests.unit.client.fakes import WAIT_S, Ends, make_run


def test_a_function_runs_and_its_end_is_told() -> None:
    ends = Ends()
    threads = Threads(4, ends)
    threads.start(make_run(1), lambda _: 5)
    assert ends.next() == ("r1", Outcome("succeeded", 5))


@pytest.mark.parametrize("error", [GiveUp("no"), SystemExit(1), KeyboardInterrupt()])
def test_whatever_a_function_raises_ends_the_run_and_not_the_thread(error: BaseException) -> None:
    ends = Ends()
    threads = Threads(1, ends)

    def fail(_: Run) -> None:
        raise error

    threads.start(make_run(1), fail)
    assert ends.next()[1].status == "failed"
    threads.start(make_run(2), lambda _: 1)
    assert ends.next() == ("r2", Outcome("succeeded", 1))


def test_as_many_run_at_once_as_the_limit_says() -> None:
    ends = Ends()
    threads = Threads(8, ends)
    together = threading.Barrier(8)  # breaks unless eight are there at once
    for number in range(8):
        threads.start(make_run(number), lambda _: together.wait(WAIT_S))
    assert {ends.next()[1].status for _ in range(8)} == {"succeeded"}


def test_more_runs_than_the_limit_wait_for_a_thread() -> None:
    ends = Ends()
    threads = Threads(2, ends)
    pair = threading.Barrier(2)
    names = set()

    def meet(_: Run) -> None:
        names.add(threading.current_thread().name)
        pair.wait(WAIT_S)

    for number in range(6):
        threads.start(make_run(number), meet)
    assert {ends.next()[0] for _ in range(6)} == {f"r{number}" for number in range(6)}
    assert len(names) == 2


def test_one_after_the_other_needs_few_threads() -> None:
    ends = Ends()
    threads = Threads(100, ends)
    names = set()

    def note(_: Run) -> None:
        names.add(threading.current_thread().name)

    for number in range(50):
        threads.start(make_run(number), note)
        ends.next()
    # The end is told a moment before the thread waits again, so now and then a second one is made.
    assert len(names) < 10


def test_threads_do_not_keep_the_process_alive() -> None:
    ends = Ends()
    threads = Threads(1, ends)
    threads.start(make_run(1), lambda _: int(threading.current_thread().daemon))
    assert ends.next()[1].tokens == 1


def test_closing_ends_idle_threads() -> None:
    ends = Ends()
    threads = Threads(2, ends)
    found: list[threading.Thread] = []
    threads.start(make_run(1), lambda _: found.append(threading.current_thread()))
    ends.next()
    threads.close()
    found[0].join(WAIT_S)
    assert not found[0].is_alive()


def test_a_busy_thread_can_be_interrupted_by_others() -> None:
    # What heartbeats rest on: Python takes the lock away from a function that never waits.
    assert sys.getswitchinterval() < 0.1
