"""A scheduler that is broken on purpose: it sends its dispatches outside the step's transaction."""

import sys

from confluent_kafka import Producer

from streams.app.__main__ import main
from streams.app.settings import Settings
from streams.app.transaction import KafkaWriter, StepRecords
from tests.integration.traffic import make_producer

_OUTSIDE: dict[int, Producer] = {}


def _write(self: KafkaWriter, records: StepRecords) -> None:
    """Hand out the work first, then remember it."""
    producer = _OUTSIDE.get(id(self))
    if producer is None:
        producer = _OUTSIDE[id(self)] = make_producer(Settings.load().kafka)
    for key, value in records.dispatches:
        producer.produce(self._names.dispatch, value, key)
    assert producer.flush(30) == 0
    records.dispatches = []
    _write_rightly(self, records)


_write_rightly = KafkaWriter.write
KafkaWriter.write = _write  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(main())
