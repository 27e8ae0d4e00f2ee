"""What the topics take: how large a record may be, and what becomes of one that is larger.

Our topics take 16 MiB and a request has 1 MB at most, so everything fits, unless somebody has set less. Then what would
not fit is refused at the door, and a rejection is cut. If a topic is set to less while runs wait that it took before,
Kafka refuses a step; this keeps which of its records were too large until the shard is loaded again, and the next step
takes those runs out. For the shard's own thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.core.inputs import Undeliverable
from streams.errors import ConfigError, Unavailable
from streams.wire import (
    MAX_MESSAGE_BYTES,
    MAX_VALUE_BYTES,
    OVERHEAD_BYTES,
    STEP_BYTES,
    Assignment,
    decode_dispatch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.limits")

# Names and numbers of a dispatch or a row, which stand there beside the body: four names of 255 characters, each of
# which takes six bytes at most, and one of them once more as key.
_HEAD_BYTES: Final = 9_216

# What librdkafka puts into one batch, by default. It looks at no topic's limit.
_BATCH_BYTES: Final = 1_000_000

# Less is of no use: names and details alone need 20 KB. So small are batches if it is not known what a topic takes.
LEAST_BYTES: Final = 65_536


def written(names: TopicNames) -> list[str]:
    """Return the topics that a shard writes records of others to, or of its own."""
    return [names.requests, names.completions, names.dispatch, names.rejected, names.journal, names.state]


class Refused(NamedTuple):
    """A record that Kafka has refused for its size, or for that of the batch it was in."""

    topic: str
    key: bytes | None
    value: bytes | None

    @property
    def size(self) -> int:
        """Bytes that it needs."""
        return len(self.key or b"") + len(self.value or b"") + OVERHEAD_BYTES


class TopicLimits:
    """The limits of the topics that one shard writes."""

    def __init__(self, names: TopicNames, read: Callable[[], Mapping[str, int]] | None = None) -> None:
        """`read` returns what topics take, in bytes, as far as we may know; it raises what `streams.admin` does."""
        self.names: Final = names
        self._read: Final = read
        self._stated: dict[str, int] = {}
        self._learned: dict[str, int] = {}
        self._refused: list[Refused] = []
        self._batch_was: int | None = None  # `batch_bytes` when they were refused
        self._careful = False  # batches are kept small, so that a refusal tells which record is meant

    def of(self, topic: str) -> int:
        """Return the bytes that a record of a topic may have, `OVERHEAD_BYTES` included."""
        most = self._stated.get(topic, MAX_MESSAGE_BYTES)
        return min(most, self._learned.get(topic, most))

    @property
    def largest_body(self) -> int | None:
        """The bytes that the body of a run may have; None: any that a request can hold."""
        names = self.names
        most = min(self.of(names.dispatch), self.of(names.state)) - _HEAD_BYTES - OVERHEAD_BYTES
        return None if most >= MAX_VALUE_BYTES else most

    @property
    def batch_bytes(self) -> int | None:
        """The bytes that may wait to be sent together; None: as many as there are."""
        least = min(map(self.of, written(self.names)))
        if self._careful:
            return min(least, LEAST_BYTES) - OVERHEAD_BYTES
        return None if least >= _BATCH_BYTES + OVERHEAD_BYTES else least - OVERHEAD_BYTES

    def refresh(self) -> None:
        """Ask Kafka for the limits. What we may not know, or can't ask now, is taken to be as it was, or as we set it.

        Raises `ConfigError` for a topic that takes so little that its shard could not go on.
        """
        if self._read is not None:
            try:
                stated = dict(self._read())
            except (ConfigError, Unavailable) as error:
                _LOG.info("streams.app.limits_unknown: %s; taken to be %s", error, self._stated or "our own")
            else:
                for topic, most in stated.items():
                    if most != self._stated.get(topic):
                        self._learned.pop(topic, None)
                self._stated = stated
        names = self.names
        for topic in (names.state, names.journal):
            self._check(topic, STEP_BYTES, "one record of a step may need so much")
        for topic in (names.dispatch, names.rejected):
            self._check(topic, LEAST_BYTES, "names alone may need half of it")

    def note(self, refused: Refused) -> None:
        """Keep a record that Kafka has refused for its size, or would refuse."""
        if not self._refused:
            self._batch_was = self.batch_bytes
        self._refused.append(refused)

    def fits(self, topic: str, key: bytes | None, value: bytes | None) -> bool:
        """Whether a topic takes a record, as far as we know; if not, the record is noted."""
        record = Refused(topic, key, value)
        if record.size <= self.of(topic):
            return True
        self.note(record)
        return False

    def settle(self) -> list[Undeliverable]:
        """Return the runs that can't be dispatched, by what was refused since the last call. After a `refresh`.

        What else was too large is refused at the door from now on, or cut. If nothing was larger than its topic takes,
        as far as we know, batches are kept small from now on: what is refused then, and is larger than `LEAST_BYTES`,
        was alone in its batch.

        Raises:
            ConfigError: a topic does not even take `LEAST_BYTES`, or not what a step needs.
        """
        refused, self._refused = self._refused, []
        too_large = [each for each in refused if each.size > self.of(each.topic)]
        if refused and not too_large and self.batch_bytes == self._batch_was:
            too_large = self._learn(refused) if self._careful else []
            self._careful = True
        runs: dict[tuple[str, str], Undeliverable] = {}
        for each in too_large:
            if each.topic == self.names.dispatch:
                given = decode_dispatch(each.value)
                if isinstance(given, Assignment):
                    limit = self._stated.get(each.topic)
                    runs[given.tenant, given.run_id] = Undeliverable(given.tenant, given.run_id, each.size, limit)
        return list(runs.values())

    def _learn(self, refused: list[Refused]) -> list[Refused]:
        """Return which of the records that were refused in small batches are too large for their topics themselves."""
        too_large = [each for each in refused if each.size > LEAST_BYTES]
        if not too_large:
            raise ConfigError(
                f"takes less than {LEAST_BYTES} bytes: set its max.message.bytes to more", field=refused[0].topic
            )
        for each in too_large:
            self._learned[each.topic] = min(each.size - 1, self.of(each.topic))
        return too_large

    def _check(self, topic: str, least: int, why: str) -> None:
        most = self.of(topic)
        if most < least:
            raise ConfigError(
                f"takes {most} bytes, and {why}: set its max.message.bytes to {least} or more", field=topic
            )
