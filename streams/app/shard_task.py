"""A shard's thread: fence, load, step, step, step. Its end is never silent.

The event loop talks to it through the inbox and a few thread-safe verbs; it talks back through futures and callbacks.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple

from streams import clock
from streams.app import collector
from streams.app.inbox import Inbox
from streams.app.shard_clock import ShardClock
from streams.errors import ConfigError, FairstreamError, NotAuthorized, OwnershipLost, StepAborted, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from streams.app.policy_reader import PolicyFeed
    from streams.app.settings import Settings
    from streams.app.status import StatusPublisher
    from streams.app.step import Stepper
    from streams.app.transaction import Writer

_LOG: Final = logging.getLogger("streams.app.shard")

# A step that is aborted over and over will not succeed by trying: the process ends, and says why.
_TRIES: Final = 5
_RETRY_S: Final = 0.2  # doubled each time

_IDLE_S: Final = 1.0  # the longest wait without looking up: a timer set by hand of the clock is late by this at most
_STATUS_SHARE: Final = 20  # a view that takes 1 ms to make is made every 20 ms at most

_SERVING: Final = "waits for Kafka to take a step"

Offsets = dict[str, int]  # topic, without prefix -> offset of the last record applied; absent: none yet


class ShardParts(NamedTuple):
    """What a shard is made of. `load` reads it from the state topic; call it only after a fence."""

    writer: Writer
    load: Callable[[], Stepper]


class Listener(NamedTuple):
    """Who hears of a shard. Called from its thread."""

    on_room: Callable[[int], None]  # a full inbox has room again
    on_done: Callable[[list[Any]], None]  # events whose records are in a committed step, in order
    on_end: Callable[[ShardTask, BaseException | None], None]  # the last thing it does


class ShardTask(threading.Thread):
    """Serves one shard from `start()` to `close()`, or to the first error that it cannot mend."""

    def __init__(
        self,
        shard: int,
        takeover: int,
        make: Callable[[], ShardParts],
        *,
        settings: Settings,
        policies: PolicyFeed,
        status: StatusPublisher,
        listener: Listener,
    ) -> None:
        super().__init__(name=f"shard-{shard}", daemon=True)
        self.shard: Final = shard
        self.inbox: Final = Inbox(settings.inbox_records, settings.inbox_bytes, lambda: listener.on_room(shard))
        self.inbox.reset(takeover)
        self.opened: Final[Future[Offsets]] = Future()
        self.pause_s = settings.step_pause_ms / 1000
        self._make: Final = make
        self._settings: Final = settings
        self._policies: Final = policies
        self._status: Final = status
        self._listener: Final = listener
        self._closing: Final = threading.Event()
        self._lock: Final = threading.Lock()
        self._confirmations: list[tuple[int, Future[Offsets]]] = []
        self._ended = False
        self._fenced = False
        self._doing = _SERVING
        self._busy_since: float | None = None
        self._parts: ShardParts | None = None
        self._stepper: Stepper
        self._clock: ShardClock
        self._next_status = 0.0

    # --- from any thread

    def confirm(self, takeover: int) -> Future[Offsets]:
        """Drop what waits in the inbox, prove that the shard is still ours, and say where to read on.

        Fails with `OwnershipLost` if it is not, or if the task has ended.
        """
        answer: Future[Offsets] = Future()
        with self._lock:
            if self._ended:
                answer.set_exception(OwnershipLost("the shard's task has ended"))
            else:
                self._confirmations.append((takeover, answer))
        self.inbox.wake()
        return answer

    @property
    def fenced(self) -> bool:
        """Whether its fence came through: it has been the owner, at least for a moment."""
        return self._fenced

    @property
    def doing(self) -> str:
        """What keeps it from ending, if it does not: "is being loaded"."""
        return self._doing

    @property
    def busy_s(self) -> float:
        """How long the write under way has taken so far, in seconds; 0 if there is none, as while rows are loaded."""
        since = self._busy_since
        return 0.0 if since is None else clock.monotonic() - since

    @property
    def closing(self) -> bool:
        """Whether it is to end; a load that is under way asks."""
        return self._closing.is_set()

    def close(self) -> None:
        """End after the step under way."""
        self._closing.set()
        self.inbox.wake()

    def give_up(self) -> None:
        """End now, even if Kafka does not answer: the step under way may or may not be written."""
        self.close()
        parts = self._parts
        if parts is not None:
            parts.writer.give_up()

    # --- the shard's own thread

    def run(self) -> None:
        """Serve, and report how it ended."""
        failure: BaseException | None = None
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - handed on, whatever it is
            failure = error
        self._let_go()
        self._status.forget(self.shard)
        with self._lock:
            self._ended = True
            unanswered = [answer for _, answer in self._confirmations]
        reason = failure if failure is not None else OwnershipLost("the shard was closed")
        for answer in [self.opened, *unanswered]:
            if not answer.done():
                answer.set_exception(reason)
        self._listener.on_end(self, failure)

    def _serve(self) -> None:
        """Take the shard over, then step until it is closed.

        An idle shard writes nothing, so it may not hear for hours that another writer has fenced it (see `takeover`
        for how that comes). Until then nothing is due and nothing has arrived, so nobody misses it. The first record
        or timer makes it write; that fails, its memory is dropped, and the group is asked.
        """
        self._parts = self._make()
        if self._closing.is_set():
            raise OwnershipLost("closed before its fence, which would be one against whoever serves the shard next")
        self._doing = "waits for its fence"
        self._parts.writer.fence()
        self._fenced = True
        self._doing = "is being loaded"
        self._stepper = self._parts.load()
        self._doing = _SERVING
        self._clock = ShardClock(self._stepper.core.now_ms)
        self.opened.set_result(dict(self._stepper.positions.applied))
        while not self._closing.is_set():
            self._answer()
            self._show()
            if self._advance():
                self._closing.wait(self.pause_s)
            else:
                self.inbox.wait(self._idle_s())

    def _advance(self) -> bool:
        """Step if there is a reason to; return whether there was.

        Policies are taken in alone: with all that may arrive for a step they have no room in its journal record.
        """
        changes = self._policies.after(self._stepper.core.policy_version)
        batches = [] if changes else self.inbox.take(self._settings.max_step_inputs, self._settings.max_step_bytes)
        if not batches and not changes and not self._due():
            return False
        self._until_written(lambda: self._stepper.step(batches, changes, self._now_ms()))
        self._listener.on_done([batch.event for batch in batches if batch.event is not None])
        return True

    def _due(self) -> bool:
        """Whether there is reason for a step without any input.

        A new reign begins with one at once: the core counts the time since the last step as an outage, in which no
        worker could be heard, and from now on they can.
        """
        if not self._stepper.arrived:
            return True
        due = self._stepper.core.next_timer_ms()
        return due is not None and due <= self._now_ms()

    def _now_ms(self) -> int:
        return max(self._clock.now_ms(), self._stepper.core.now_ms)

    def _idle_s(self) -> float:
        due = self._stepper.core.next_timer_ms()
        if due is None:
            return _IDLE_S
        return min(_IDLE_S, max(0, due - self._now_ms()) / 1000)

    def _answer(self) -> None:
        """Confirm the shard to a takeover that keeps it."""
        while self._confirmations:
            takeover, answer = self._confirmations[0]
            self.inbox.reset(takeover)
            self._until_written(lambda: self._stepper.confirm())  # noqa: PLW0108 - a reload puts another stepper in place
            with self._lock:
                del self._confirmations[0]  # only now: if we fail, `run` answers what is left
            answer.set_result(dict(self._stepper.positions.applied))

    def _until_written(self, write: Callable[[], None]) -> None:
        """Repeat an aborted write, each time from what the rows say."""
        delay_s = _RETRY_S
        for left in reversed(range(_TRIES)):
            if self._written(write, left):
                return
            self._closing.wait(delay_s)
            delay_s *= 2
            # Not where the error is caught, whose frames hold it: what was loaded before is freed first.
            del self._stepper
            collector.drop()
            assert self._parts is not None, "something was written"
            self._stepper = self._parts.load()

    def _written(self, write: Callable[[], None], left: int) -> bool:
        """Return whether a write succeeded; if not, it is worth another try, of which so many are left."""
        self._busy_since = clock.monotonic()
        try:
            write()
        except StepAborted as error:
            cause = error.__cause__
            if isinstance(cause, NotAuthorized):
                raise cause from None  # nobody grants a right within a second
            if left == 0:
                # What a person can mend, or time, is not the end of the process.
                kind = type(cause) if isinstance(cause, (ConfigError, Unavailable)) else FairstreamError
                raise kind(f"shard {self.shard}: aborted {_TRIES} times: {error}") from error
            _LOG.warning(
                "streams.app.step_aborted shard=%d: %s; loading it again, %d tries left", self.shard, error, left
            )
            return False
        finally:
            self._busy_since = None
        return True

    def _let_go(self) -> None:
        """Keep neither the writer nor the rows alive: this object is, as long as anybody waits for its end."""
        self._parts = None
        if hasattr(self, "_stepper"):
            del self._stepper
            collector.drop()

    def _show(self) -> None:
        """Hand a view of the shard to the status topic's publisher, now and then."""
        begun = clock.monotonic()
        if begun < self._next_status:
            return
        self._status.offer(self._stepper.core.snapshot())
        now = clock.monotonic()
        self._next_status = now + max(self._settings.status_interval_ms / 1000, (now - begun) * _STATUS_SHARE)
