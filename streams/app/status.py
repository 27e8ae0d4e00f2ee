"""Publishes what the shards look like to the status topic: for people, once in a while, only what has changed.

A view, not state: it has a producer of its own outside every transaction, a slow Kafka makes it late or makes it
drop views, and it never holds up a step.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from streams.core.snapshot import ClassView
from streams.kafka import KafkaSettings
from streams.wire import PARTITIONER, encode_class_status, encode_flow_status, encode_shard_status

if TYPE_CHECKING:
    from streams.core.snapshot import FlowView, ShardSnapshot

_LOG: Final = logging.getLogger("streams.app.status")

_FLUSH_S: Final = 1.0
_QUEUE_MESSAGES: Final = 100_000  # a full queue drops views: the next ones are newer anyway

ViewKey = tuple[str, ...]  # class; class and tenant


class StatusPublisher(threading.Thread):
    """Takes snapshots from the shards' threads and publishes the differences from its own."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        super().__init__(name="status-publisher", daemon=True)
        self._topic: Final = topic
        self._offered: dict[int, ShardSnapshot] = {}
        self._changed: Final = threading.Condition()
        self._closing = False
        self._shown: dict[int, dict[ViewKey, ClassView | FlowView]] = {}
        self._in_full: set[int] = set()  # shards of which something may be missing that was shown last
        self._complained = False
        self._producer: Final = Producer(
            {
                **kafka.client(
                    partitioner=PARTITIONER,
                    linger_ms=20,
                    message_timeout_ms=5_000,
                    queue_buffering_max_messages=_QUEUE_MESSAGES,
                    delivery_report_only_error=True,
                ),
                # librdkafka has no such property: the Python client takes it out.
                "on_delivery": self._on_delivery,
            }
        )

    def offer(self, snapshot: ShardSnapshot) -> None:
        """Show this in place of any snapshot of the same shard that was not shown yet. Never blocks."""
        with self._changed:
            self._offered[snapshot.shard.shard] = snapshot
            self._changed.notify()

    def forget(self, shard: int) -> None:
        """The shard left this process: when it comes back, show all of it."""
        with self._changed:
            self._offered.pop(shard, None)
            self._shown.pop(shard, None)

    def close(self) -> None:
        """End after what was offered."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def run(self) -> None:
        """Publish until closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._offered or self._closing)
                offered, self._offered = self._offered, {}
                if not offered:
                    break
            for snapshot in offered.values():
                self._publish(snapshot)
            self._producer.poll(0)
        self._producer.flush(_FLUSH_S)

    def _publish(self, snapshot: ShardSnapshot) -> None:
        """Write the shard's view always, a class's or flow's only when it differs from the one shown last.

        Or when something was dropped since: what does not change again would be wrong for good.
        """
        shard, at_ms = snapshot.shard.shard, snapshot.shard.now_ms
        self._produce(*encode_shard_status(snapshot.shard))
        shown = self._shown.setdefault(shard, {})
        in_full = shard in self._in_full
        self._in_full.discard(shard)
        current: dict[ViewKey, ClassView | FlowView] = {
            **{(class_.class_,): class_ for class_ in snapshot.classes},
            **{(flow.class_, flow.tenant): flow for flow in snapshot.flows},
        }
        for key, view in current.items():
            if in_full or shown.get(key) != view:
                self._produce(*_encode(view, shard, at_ms))
        for key in shown.keys() - current.keys():
            gone, _ = _encode(shown[key], shard, at_ms)
            self._produce(gone, None)
        self._shown[shard] = current

    def _produce(self, key: bytes, value: bytes | None) -> None:
        try:
            self._producer.produce(self._topic, value, key)
        except BufferError:
            self._complain("the queue is full")
        except KafkaException as error:  # so it says that the topic is gone, as long as that is so
            self._complain(error.args[0].str())

    def _on_delivery(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._complain(error.str())

    def _complain(self, why: str) -> None:
        self._in_full.update(self._shown)
        if not self._complained:
            self._complained = True  # once: it may happen for every flow, and steps matter more
            _LOG.warning("streams.app.status_dropped topic=%s: %s", self._topic, why)


def _encode(view: ClassView | FlowView, shard: int, at_ms: int) -> tuple[bytes, bytes]:
    if isinstance(view, ClassView):
        return encode_class_status(view, shard, at_ms)
    return encode_flow_status(view, shard, at_ms)
