from __future__ import annotations

from threading import Thread

from streams.client.attempts import Attempts
from streams.client.run import Run
from tests.unit.client.fakes import make_assignment


def test_an_attempt_is_here_once() -> None:
    attempts = Attempts(5)
    first, again, next_attempt = Run(make_assignment()), Run(make_assignment()), Run(make_assignment(attempt=2))
    assert attempts.add(first)
    assert not attempts.add(again)
    assert attempts.add(next_attempt)
    assert attempts.snapshot() == [first, next_attempt]
    assert attempts.find(first.key) is first


def test_an_attempt_is_ended_once_and_only_by_its_own_run() -> None:
    attempts = Attempts(5)
    run = Run(make_assignment())
    attempts.add(run)
    assert not attempts.end(Run(make_assignment()))
    assert attempts.end(run)
    assert not attempts.end(run)
    assert attempts.find(run.key) is None


def test_room_is_what_the_limit_leaves() -> None:
    attempts = Attempts(2)
    assert attempts.wait_for_room(0) == 2
    runs = [Run(make_assignment(f"r{n}")) for n in range(2)]
    assert attempts.add(runs[0])
    assert attempts.wait_for_room(0) == 1
    assert attempts.add(runs[1])
    assert attempts.wait_for_room(0.01) == 0


def test_an_end_wakes_who_waits_for_room() -> None:
    attempts = Attempts(1)
    run = Run(make_assignment())
    attempts.add(run)
    rooms: list[int] = []
    waiter = Thread(target=lambda: rooms.append(attempts.wait_for_room(30)))
    waiter.start()
    attempts.end(run)
    waiter.join(10)
    assert rooms == [1]


def test_waiting_for_none() -> None:
    attempts = Attempts(1)
    assert attempts.wait_until_none(0)
    run = Run(make_assignment())
    attempts.add(run)
    assert not attempts.wait_until_none(0.01)
    attempts.end(run)
    assert attempts.wait_until_none(0)
