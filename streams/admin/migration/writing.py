"""What a migration writes with, and how much of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from streams.errors import FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.kafka import from_kafka
from streams.transactions import Transactions, open_producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from confluent_kafka import KafkaError

    from streams.kafka import KafkaSettings
    from streams.transactions import Out

_PATIENCE_S: Final = 60.0  # a broker's restart
_TIMEOUT_MS: Final = 60_000  # of a transaction that is left behind: readers wait for its end, unless it is fenced

# What one transaction holds at most, unless its only record is larger.
RECORDS: Final = 2_000
BYTES: Final = 4 << 20

Item = TypeVar("Item")


class Writer:
    """Writes under a transactional id. After an error it is thrown away: run again, a migration goes on from there."""

    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        """Raises `ConfigError` for options that librdkafka does not know."""
        self._id: Final = transactional_id
        self._transactions: Final = Transactions(
            open_producer(kafka, transactional_id, timeout_ms=_TIMEOUT_MS),
            f"a transaction of {transactional_id}",
            patience_s=_PATIENCE_S,
            meaning=_failure,
        )

    def fence(self) -> None:
        """Become the only one that writes under this id; an open transaction of an earlier one is ended.

        Raises as `Transactions.fence` does.
        """
        self._transactions.fence(f"taking over {self._id}")

    def write(self, records: Sequence[Out]) -> None:
        """Write all or nothing. Raises as `Transactions.write`, but `Unavailable` for what another try may mend."""
        try:
            self._transactions.write(records)
        except StepAborted as error:
            raise Unavailable(f"{error}; run it again, it goes on from here") from error


def _failure(error: KafkaError, doing: str) -> FairstreamError:
    failure = from_kafka(error, doing)
    if isinstance(failure, OwnershipLost):
        return OwnershipLost(f"{failure}; is another migration, or a scheduler, running?")
    return failure


def batches(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield records, or what stands for one each, in order and in bounded batches; `size` says how many bytes."""
    batch: list[Item] = []
    total = 0
    for item in items:
        own = size(item)
        if batch and (total + own > BYTES or len(batch) >= RECORDS):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += own
    if batch:
        yield batch
