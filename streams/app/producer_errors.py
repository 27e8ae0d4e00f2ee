"""What an error of a transactional producer means for the shard that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.errors import FairstreamError, OwnershipLost, Unavailable
from streams.kafka import from_kafka

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# Kafka has ended the transaction, or forgotten the producer (one that writes nothing for a week), or a topic that it
# wrote to was made anew. This producer will not get any further, and another one will.
_NEEDS_FENCE: Final = frozenset(
    {
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "UNKNOWN_PRODUCER_ID",
        "_GAPLESS_GUARANTEE",
        "_INCONSISTENT",
    }
)


def final(error: KafkaError) -> FairstreamError:
    """Return what a producer that cannot go on means for the shard."""
    mapped = from_kafka(error, "writing a step")
    if isinstance(mapped, OwnershipLost):
        return OwnershipLost(f"another scheduler serves the shard now: {error.str()}")
    if needs_fence(error):
        return Unavailable(f"only a new writer can tell whether the step was written: {error.str()}")
    return mapped


def needs_fence(error: KafkaError) -> bool:
    """Whether only another producer gets further, and can tell what became of this one's last transaction."""
    return error.name() in _NEEDS_FENCE
