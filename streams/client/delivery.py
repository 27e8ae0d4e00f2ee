"""What becomes of a record that was queued: where it stands in Kafka, or why it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streams import clock
from streams.errors import FairstreamError, Unavailable
from streams.kafka import from_kafka
from streams.wire import Position

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from streams.client.sender import Sender


class Delivery:
    """The fate of one record: pending, delivered or failed. Made by `Publisher`; behaves like a small future.

    Nobody needs to look at it: `Publisher.flush` raises for every failure that went unseen.
    """

    __slots__ = ("_error", "_on_done", "_position", "_sender")

    def __init__(self, sender: Sender, on_done: Callable[[Delivery], None]) -> None:
        self._sender = sender
        self._on_done = on_done
        self._position: Position | None = None
        self._error: FairstreamError | None = None

    def done(self) -> bool:
        """Say whether the record was delivered or has failed."""
        if not self._settled:
            self._sender.poll()
        return self._settled

    def result(self, timeout_s: float = 30.0) -> Position:
        """Wait for the record's delivery and return its place.

        Raises what the record failed by, or `Unavailable` if neither has happened after `timeout_s`; it may
        still be delivered then.
        """
        end = clock.monotonic() + timeout_s
        while not self._settled:
            left = end - clock.monotonic()
            if left <= 0:
                raise Unavailable(f"not delivered within {timeout_s:g} s, but it may still be; is Kafka running there?")
            self._sender.poll(min(left, 0.1))
        if self._error is not None:
            raise self._error
        assert self._position is not None
        return self._position

    @property
    def error(self) -> FairstreamError | None:
        """Why the record failed; None while pending, and when delivered."""
        return self._error

    @property
    def _settled(self) -> bool:
        return self._position is not None or self._error is not None

    def settle(self, error: KafkaError | None, message: Message) -> None:
        """Take Kafka's word; called by the producer, once."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is not None:
            self._error = from_kafka(error, f"sending to {topic}")
        else:
            assert topic is not None
            assert partition is not None
            assert offset is not None
            self._position = Position(topic, partition, offset)
        self._on_done(self)
