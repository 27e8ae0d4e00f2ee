"""A scheduler that is broken on purpose: it does not look at what became of a step's records.

Delivery callbacks alone would not do: librdkafka refuses by itself to commit a transaction of which a record could not
be delivered, and demands that it be aborted. So this build passes over that refusal, too, as one does that sends and
forgets: the shard goes on as if the step had been written.
"""

import logging
import sys

from confluent_kafka import KafkaError, Message

from streams.app.__main__ import main
from streams.app.transaction import KafkaWriter, StepRecords
from streams.errors import StepAborted


def _on_delivery(self: KafkaWriter, error: KafkaError | None, message: Message) -> None:
    """Look away."""
    del self, error, message


def _write(self: KafkaWriter, records: StepRecords) -> None:
    try:
        _write_rightly(self, records)
    except StepAborted as error:
        logging.getLogger(__name__).warning("passed over: %s", error)  # so that the test sees that it happened


_write_rightly = KafkaWriter.write
KafkaWriter.write = _write  # type: ignore[method-assign]
KafkaWriter._on_delivery = _on_delivery  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main())
