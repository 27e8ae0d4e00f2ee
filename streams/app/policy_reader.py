"""Reads the policy topic in full, in a thread of its own, for all shards of this process.

A consumer group would give its one partition to one process only. Each shard takes the changes in offset order as
inputs of its steps, so a change is journaled where it takes effect; the reader applies nothing itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams import clock
from streams.errors import BadRecord, FairstreamError, NotAuthorized, OwnershipLost, Unavailable, visible
from streams.kafka import KafkaSettings, from_kafka
from streams.wire import MAX_POLICY_BYTES, AppliedPolicy, decode_policy, policy_bytes

_LOG: Final = logging.getLogger("streams.app.policy")

_KEPT: Final = 64  # changes for shards that are behind: the last one is what matters to a shard that lags more
_POLL_S: Final = 0.2
_READ_S: Final = 60.0


class PolicyFeed:
    """The changes read so far, for any thread.

    A change's version is its offset. Where the topic was made anew they begin at 0 again: what is stated there counts
    only once it lies above what is in force, and no topic is to be made anew while it is in use (`watch` tells).
    """

    def __init__(self) -> None:
        self._changes: tuple[tuple[AppliedPolicy, int], ...] = ()  # each with its bytes; replaced, never changed
        self._version = -1

    def after(self, version: int) -> Sequence[AppliedPolicy]:
        """Return the changes above an offset, in order; of many the last ones, that have room in one journal record.

        The shards ask before every step.
        """
        if version >= self._version:
            return ()
        return [change for change, _ in self._changes if change.offset > version]

    def add(self, change: AppliedPolicy) -> None:
        kept = [*self._changes, (change, policy_bytes(change.policy))]
        while len(kept) > _KEPT or sum(size for _, size in kept) > MAX_POLICY_BYTES:
            del kept[0]
        self._changes = tuple(kept)
        self._version = change.offset


class PolicyReader(threading.Thread):
    """Follows the policy topic into a feed, from the beginning of the topic."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        *,
        on_change: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_change` and `on_failure` are called from the reader's thread."""
        super().__init__(name="policy-reader", daemon=True)
        self.feed: Final = PolicyFeed()
        self._kafka: Final = kafka
        self._topic: Final = topic
        self._on_change: Final = on_change
        self._on_failure: Final = on_failure
        self._read: Final = threading.Event()
        self._closing: Final = threading.Event()
        self._trouble: FairstreamError | None = None  # what Kafka said last, while nothing could be read

    def wait_until_read(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Return once everything that stood in the topic has been read.

        A fresh shard that stepped earlier would admit its first runs under the built-in policy.

        Raises:
            Unavailable: that takes too long.
            OwnershipLost: `should_stop` said yes.
        """
        deadline = clock.monotonic() + _READ_S
        while not self._read.wait(_POLL_S):
            if should_stop():
                raise OwnershipLost("the shard is closed while it waits for the policy")
            if clock.monotonic() > deadline:
                why = self._trouble or "Kafka does not answer"
                raise Unavailable(f"{self._topic} could not be read within {_READ_S:g} s: {why}")

    def close(self) -> None:
        """End soon."""
        self._closing.set()

    def run(self) -> None:
        """Read until closed."""
        try:
            self._follow()
        except BaseException as error:  # noqa: BLE001 - handed on: a shard must not go on under old rules unnoticed
            self._on_failure(error)

    def _follow(self) -> None:
        consumer = Consumer(
            self._kafka.client(
                group_id=self._kafka.reader_group,
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="earliest",
            )
        )
        try:
            consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
            while not self._closing.is_set():
                message = consumer.poll(_POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    self._take(message.offset(), message.value())
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    self._read.set()
                else:
                    self._judge(error)
        finally:
            consumer.close()

    def _judge(self, error: KafkaError) -> None:
        """Go on after what librdkafka mends, or somebody who creates the topic; raise the rest."""
        trouble = from_kafka(error, f"reading {self._topic}")
        if error.fatal() or isinstance(trouble, NotAuthorized):
            raise trouble
        self._trouble = trouble

    def _take(self, offset: int | None, value: bytes | None) -> None:
        assert offset is not None, "a consumed record has an offset"
        if value is None:
            return  # a name was taken out of the topic: its rules stay in force until others are stated
        try:
            change = decode_policy(value)
        except BadRecord as error:
            # Whoever wrote it went past `fairstream policy apply`. The last good rules stay.
            _LOG.error("streams.app.policy_refused topic=%s offset=%d: %s", self._topic, offset, error)
            return
        name, author = visible(change.policy.name), visible(change.author)
        _LOG.info("streams.app.policy_read offset=%d name=%s author=%s", offset, name, author)
        self.feed.add(AppliedPolicy(offset, change.author, change.applied_ms, change.policy))
        self._on_change()
