"""Writes a checkpoint of each shard of this process now and then, from a thread of its own, beside the steps.

Steps never wait for it: it reads what they have committed. It takes turns with them in short slices, and rests for
longer than it works. What it can't do is said, and tried again later: without it everything is served all the same.

A checkpoint is due an interval after the last one in the topic, whoever has written that, so neither restarts nor
rebalances multiply them; nor does a large state that changes little: as many rows must have been written since as the
last one holds, or a day have passed. So, but for one a day, they hold at most twice as many rows as the steps write.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.admin.checkpointing import Last, last_of, write_checkpoint
from streams.errors import FairstreamError, OwnershipLost
from streams.partition import bounds, open_reader

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

_LOG: Final = logging.getLogger("streams.app.checkpointer")

_LOOK_S: Final = 5.0  # from one look at the shards of this process to the next
_RETRY_MS: Final = 10 * 60_000  # after one that was given up, whoever did
_AGAIN_MS: Final = 60_000  # after a failure, and where too little has changed
_LONGEST_MS: Final = 24 * 3_600_000  # between two, if anything has changed: the inputs after the last one must last

_SLICE: Final = 200  # rows: well below a millisecond
_REST: Final = 3  # times as long as a slice took: steps have most of the processor while a large state is copied
_LONGEST_REST_S: Final = 0.02  # it may have waited for Kafka instead


def due(last: Last | None, state_end: int, now_ms: int, interval_ms: int) -> bool:
    """Tell whether a shard whose state topic ends at `state_end` now needs a checkpoint. Pure."""
    if last is None:
        return True  # as in a deployment of an older version, whose journal explains too little
    since = abs(now_ms - last.written_ms)  # a clock that was far ahead does not hold it up for good
    if last.foot is None:
        return since >= min(interval_ms, _RETRY_MS)
    grown = state_end - last.foot.state_end
    return since >= interval_ms and grown != 0 and (abs(grown) >= last.foot.rows or since >= _LONGEST_MS)


class Checkpointer(threading.Thread):
    """Writes checkpoints from `start()` to `close()`."""

    def __init__(
        self, kafka: KafkaSettings, shards: Callable[[], Iterable[int]], *, interval_s: float, look_s: float = _LOOK_S
    ) -> None:
        """`shards` are those that this process serves now. An interval of 0: nothing is written."""
        super().__init__(name="checkpointer", daemon=True)
        self._kafka: Final = kafka
        self._shards: Final = shards
        self._interval_ms: Final = int(interval_s * 1000)
        self._look_s: Final = min(look_s, interval_s)
        self._closing: Final = threading.Event()
        self._not_before: dict[int, int] = {}  # shard -> ms; of those of the last look
        self._trouble = ""  # said last

    def close(self) -> None:
        """End soon; one that is being written is given up."""
        self._closing.set()

    def run(self) -> None:
        """Write what is due until closed."""
        while self._interval_ms and not self._closing.wait(self._look_s):
            now_ms = clock.now_ms()
            self._not_before = {shard: self._not_before.get(shard, now_ms) for shard in self._shards()}
            for shard, not_before in self._not_before.items():
                if not_before <= now_ms and not self._closing.is_set():
                    self._not_before[shard] = self._serve(shard)

    def _serve(self, shard: int) -> int:
        """Write a checkpoint if it is due; return when to look again, in ms."""
        try:
            return self._look(shard)
        except FairstreamError as error:
            if not self._closing.is_set():  # else it is likely to be why
                self._complain(shard, str(error), None)
        except Exception as error:  # noqa: BLE001 - said in full; it must not end a process that serves
            self._complain(shard, repr(error), error)
        return clock.now_ms() + min(_AGAIN_MS, self._interval_ms)

    def _look(self, shard: int) -> int:
        with open_reader(self._kafka, f"{self._kafka.topics.checkpoints}-look") as consumer:
            last = last_of(self._kafka, consumer, shard)
            _, state_end = bounds(consumer, self._kafka.topics.state, shard)
        now_ms = clock.now_ms()
        if due(last, state_end, now_ms, self._interval_ms):
            self._write(shard)
            return clock.now_ms() + self._interval_ms
        left = 0 if last is None else last.written_ms + self._interval_ms - now_ms
        return now_ms + max(left, min(_AGAIN_MS, self._interval_ms))

    def _write(self, shard: int) -> None:
        begun = clock.monotonic()
        foot = write_checkpoint(self._kafka, shard, between=Turns(self._closing.is_set))
        self._trouble = ""
        if foot is not None:
            _LOG.info(
                "streams.app.checkpoint shard=%d step=%d rows=%d seconds=%.2f",
                shard,
                foot.step,
                foot.rows,
                clock.monotonic() - begun,
            )

    def _complain(self, shard: int, why: str, error: Exception | None) -> None:
        if why != self._trouble:  # once: it is tried every minute
            self._trouble = why
            _LOG.warning(
                "streams.app.no_checkpoint shard=%d: %s; runs are served all the same, and it is tried again",
                shard,
                why,
                exc_info=error,
            )


class Turns:
    """Called after each row: lets steps come in between, and ends the work when the process does."""

    def __init__(self, should_stop: Callable[[], bool], pause: Callable[[float], None] = clock.pause) -> None:
        self._should_stop: Final = should_stop
        self._pause: Final = pause
        self._rows = 0
        self._begun = clock.monotonic()

    def __call__(self, late: bool) -> None:  # noqa: FBT001 - what `Between` is told
        """Rest, but not after a `late` row: what is written meanwhile must be read faster than it is written.

        Raises `OwnershipLost` if it is to stop.
        """
        self._rows += 1
        if self._rows % _SLICE:
            return
        if self._should_stop():
            raise OwnershipLost("the process ends while it writes a checkpoint")
        if late:
            return
        self._pause(min(_LONGEST_REST_S, _REST * (clock.monotonic() - self._begun)))
        self._begun = clock.monotonic()
