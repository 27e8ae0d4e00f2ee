"""Looks at Kafka now and then, from a thread of its own: whether it answers, and whether the topics are still the same.

Shards find out by themselves when they have something to write; an idle process would not, and nobody who asks for its
health could tell an outage from quiet. One line is logged when Kafka stops to answer, and one when it answers again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from streams import clock
from streams.errors import FairstreamError

_LOG: Final = logging.getLogger("streams.app.watch")

_LOOK_S: Final = 2.0  # between two looks; an answer may take as long again


class KafkaWatch(threading.Thread):
    """Watches from `start()` to `close()`."""

    def __init__(
        self,
        where: str,
        topic_ids: Callable[[], Mapping[str, str]],
        *,
        on_change: Callable[[], None],
        on_failure: Callable[[BaseException], None],
        look_s: float = _LOOK_S,
    ) -> None:
        """`topic_ids` asks Kafka for the ids of the topics that there are; it raises if Kafka does not answer.

        `on_change` is called from this thread when a topic is gone, has come back, or was made anew; `on_failure` when
        the watch ends by an error: whoever asks for its health would be told for ever what was true then.
        """
        super().__init__(name="kafka-watch", daemon=True)
        self._where: Final = where
        self._topic_ids: Final = topic_ids
        self._on_change: Final = on_change
        self._on_failure: Final = on_failure
        self._look_s: Final = look_s
        self._closing: Final = threading.Event()
        self._known: Mapping[str, str] | None = None
        self._seen: Mapping[str, str] | None = None  # by the last look
        self._away_since: float | None = None

    @property
    def away_s(self) -> float:
        """For how long Kafka has not answered, in seconds; 0 if it does."""
        since = self._away_since
        return 0.0 if since is None else clock.monotonic() - since

    def close(self) -> None:
        """End soon."""
        self._closing.set()

    def run(self) -> None:
        """Look until closed."""
        try:
            self._watch()
        except BaseException as error:  # noqa: BLE001 - handed on, whatever it is
            self._on_failure(error)

    def _watch(self) -> None:
        # Look first: what is made anew after the first look is noticed, and shards are about to be loaded.
        while True:
            try:
                found = self._topic_ids()
            except FairstreamError as error:
                self._missed(error)
            else:
                self._found(found)
            if self._closing.wait(self._look_s):
                return

    def _missed(self, error: FairstreamError) -> None:
        if self._away_since is None:
            self._away_since = clock.monotonic()
            _LOG.warning("streams.app.kafka_away kafka=%s: waiting until it answers: %s", self._where, error)

    def _found(self, found: Mapping[str, str]) -> None:
        if self._away_since is not None:
            _LOG.info("streams.app.kafka_back kafka=%s after=%.1f s", self._where, self.away_s)
            self._away_since = None
        if self._known is None or found == self._known:
            self._known = self._seen = found
            return
        if found != self._seen:
            self._seen = found  # a broker that has just started may not know all of them yet: look once more
            return
        changed = sorted(name for name in {*found, *self._known} if found.get(name) != self._known.get(name))
        _LOG.error("streams.app.topics_changed topics=%s: deleted, or made anew, while they are in use", changed)
        self._known = found
        self._on_change()
