"""What a consumer of ours does about the errors it is told of while it polls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.errors import Unavailable
from streams.kafka import from_kafka

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


def raise_unless_passing(error: KafkaError, doing: str) -> None:
    """Raise the error, unless it is one that the client mends by itself: a broker that is away."""
    ours = from_kafka(error, doing)
    if error.fatal() or not isinstance(ours, Unavailable):
        raise ours
