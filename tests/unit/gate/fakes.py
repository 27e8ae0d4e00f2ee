"""A consumer by its contract, in memory: topics with records, a group that gives and takes partitions."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from streams.gate.turns import OnPartitions
from streams.wire import encode_request, intake_topic

PREFIX = "p."
Event = Message | Callable[[], None]


def metadata(generation: int) -> bytes:
    """A membership as librdkafka writes it."""
    return b"CGMDv2:" + struct.pack("=i", generation) + b"p.gate\x00member\x00\x01"


def record(tenant: str, offset: int, value: bytes | None = None, **more: Any) -> Message:
    if value is None:
        value = encode_request(tenant=tenant, run_id=f"{tenant}-{offset}", workflow="w")
    return Message(
        topic=intake_topic(PREFIX, tenant),
        partition=0,
        offset=offset,
        value=value,
        key=tenant.encode(),
        timestamp=(2, 1_000),
        **more,
    )


def failure(code: int, *, fatal: bool = False) -> Message:
    return Message(topic="p.requests.of.a", partition=0, error=KafkaError(code, "told so", fatal=fatal))


class FakeConsumer:
    """Hands out `queue` in order, but nothing of a paused topic until it is resumed: that is fetched again, last.

    What can be called in the queue happens inside the poll that comes to it, as rebalances do.
    """

    def __init__(self, *tenants: str) -> None:
        self.queue: deque[Event] = deque([lambda: self.assign(*tenants)] if tenants else [])
        self.generation = 1
        self.paused: set[str] = set()
        self.pauses: list[str] = []
        self.closed = False
        self.patterns: list[str] = []
        self._skipped: list[Message] = []
        self._on_assign: OnPartitions
        self._on_revoke: OnPartitions
        self._on_lost: OnPartitions

    # --- what happens to it

    def assign(self, *tenants: str) -> None:
        self._on_assign(self, [TopicPartition(intake_topic(PREFIX, tenant), 0) for tenant in tenants])  # type: ignore[arg-type]

    def revoke(self) -> None:
        self._on_revoke(self, [])  # type: ignore[arg-type]

    def lose(self) -> None:
        self._on_lost(self, [])  # type: ignore[arg-type]

    # --- its contract

    def subscribe(
        self, topics: list[str], *, on_assign: OnPartitions, on_revoke: OnPartitions, on_lost: OnPartitions
    ) -> None:
        self.patterns = topics
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost

    def poll(self, timeout: float) -> Message | None:
        assert timeout >= 0
        while self.queue:
            event = self.queue.popleft()
            if not isinstance(event, Message):
                event()
            elif event.topic() in self.paused:
                self._skipped.append(event)
            else:
                return event
        return None

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.pauses += [each.topic for each in partitions]
        self.paused |= {each.topic for each in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {each.topic for each in partitions}
        self.queue.extend(self._skipped)
        self._skipped.clear()

    def consumer_group_metadata(self) -> bytes:
        return metadata(self.generation)

    def close(self) -> None:
        self.closed = True
