from __future__ import annotations

import os
import signal
import threading

from streams import clock
from streams.client.attempts import Attempts
from streams.client.run import Run
from streams.client.stopping import Stopping, stop_on_signals
from tests.unit.client.fakes import make_assignment


def test_it_waits_for_the_runs() -> None:
    stopping, attempts = Stopping(), Attempts(1)
    stopping.ask()
    assert stopping.wait_for(attempts, 0)
    run = Run(make_assignment())
    attempts.add(run)
    assert not stopping.wait_for(attempts, 0.01)
    threading.Timer(0.01, attempts.end, [run]).start()
    assert stopping.wait_for(attempts, 30)


def test_a_second_request_ends_the_wait() -> None:
    stopping, attempts = Stopping(), Attempts(1)
    attempts.add(Run(make_assignment()))
    stopping.ask()
    threading.Timer(0.01, stopping.ask).start()
    begin = clock.monotonic()
    assert not stopping.wait_for(attempts, 30)
    assert clock.monotonic() - begin < 15


def test_a_signal_asks_and_the_former_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stopping = Stopping()
    with stop_on_signals(stopping):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.asked
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_leaves_signals_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def enter() -> None:
        with stop_on_signals(Stopping()):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [before]
