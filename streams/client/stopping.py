"""When a worker stops: asked by a program, or by a signal; a second time, at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from streams import clock

if TYPE_CHECKING:
    from types import FrameType

    from streams.client.attempts import Attempts

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOOK_S: Final = 0.1  # a signal is noticed within this time


class Stopping:
    """Counts the requests to stop: one means drain, two mean don't wait for the runs."""

    def __init__(self) -> None:
        self._asked = 0

    def ask(self) -> None:
        """Ask to stop. Safe in any thread and in signal handlers: it takes no lock."""
        self._asked += 1

    @property
    def asked(self) -> bool:
        return self._asked > 0

    def wait_for(self, attempts: Attempts, timeout_s: float) -> bool:
        """Wait until no attempt is in progress; False when `timeout_s` are over or a second request comes."""
        end = clock.monotonic() + timeout_s
        while not attempts.wait_until_none(min(_LOOK_S, max(0.0, end - clock.monotonic()))):
            if self._asked > 1 or clock.monotonic() >= end:
                return False
        return True


@contextmanager
def stop_on_signals(stopping: Stopping) -> Iterator[None]:
    """Let SIGTERM and SIGINT ask to stop. Elsewhere than in the main thread signals are the program's own business."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stopping.ask()

    before = {each: signal.signal(each, handle) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
