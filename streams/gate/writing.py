"""Writes a turn's verdicts, and that its records are done with, in one Kafka transaction: both, or neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, TopicPartition

from streams.errors import ConfigError, FairstreamError, OwnershipLost, Unavailable
from streams.kafka import NO_SUCH_TOPIC, from_kafka, mapped_errors
from streams.transactions import Out, Transactions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.gate.checking import Verdict
    from streams.transactions import ProducerLike

_ASK_S: Final = 10.0

# What the group's coordinator says to one that is no member (any more).
_NO_MEMBER: Final = frozenset({"FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"})


class TurnWriter:
    """A transactional producer. After any exception but `BadRecord` and `StepAborted` it is of no more use."""

    def __init__(
        self, producer: ProducerLike, *, patience_s: float, give_up: Callable[[], bool] = lambda: False
    ) -> None:
        """`patience_s` is how long Kafka may take for one answer; `give_up` may end the wait before."""
        self._producer: Final = producer
        self._transactions: Final = Transactions(
            producer, "a turn", patience_s=patience_s, meaning=_failure, give_up=give_up
        )

    def open(self) -> None:
        """End what an earlier producer with this transactional id has left open, and keep it from writing."""
        self._transactions.fence("opening the gate's transactions")

    def partitions(self, topic: str) -> int:
        """Return how many there are. Raises `ConfigError` if there is no such topic."""
        with mapped_errors("looking for the topics"):
            found = self._producer.list_topics(topic, _ASK_S).topics[topic]
        if found.error is not None or not found.partitions:
            raise ConfigError(NO_SUCH_TOPIC, field="topic", value=topic)
        return len(found.partitions)

    def write(self, verdicts: Sequence[Verdict], offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        """Write all or nothing. `offsets` are those after the last record that is done with, by topic and partition.

        Raises as `Transactions.write`. `OwnershipLost`: the group or a gate of the same name has gone on without us.
        `Unavailable`: where the group's offsets stand tells whether it was written.
        """
        done = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        self._transactions.write(
            (
                Out(each.topic, each.partition, each.key, each.value, each.timestamp_ms, each.headers)
                for each in verdicts
            ),
            (done, membership),
        )


def _failure(error: KafkaError, doing: str) -> FairstreamError:
    """Return what a failed call means for the gate."""
    failure = from_kafka(error, doing)
    if error.name() in _NO_MEMBER:
        return OwnershipLost(f"{failure}; the group has gone on without this gate")
    if isinstance(failure, OwnershipLost):
        return OwnershipLost(f"{failure}; was it silent for too long, or does another gate have its --name?")
    # Of a producer that is of no more use. A new one may be, and finds out what was written.
    return Unavailable(str(failure)) if error.fatal() else failure
