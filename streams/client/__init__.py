"""For programs that file runs and programs that do them: `Publisher` and `Worker`.

Needs only confluent-kafka (`pip install 'fairstream[client]'`): no Faust, no Java. Both validate with the code that
the scheduler reads with, so what one side sends the other side understands.

What may not happen here: knowledge of how the scheduler decides. A worker does what it is handed and reports on it;
who is next is not its business.
"""

from streams.client.delivery import Delivery
from streams.client.publisher import Publisher
from streams.client.run import Run
from streams.client.verdicts import GiveUp, HandBack, TryAgain, Unwanted
from streams.client.worker import Worker, WorkerSettings
from streams.kafka import KafkaSettings
from streams.wire import Position

__all__ = [
    "Delivery",
    "GiveUp",
    "HandBack",
    "KafkaSettings",
    "Position",
    "Publisher",
    "Run",
    "TryAgain",
    "Unwanted",
    "Worker",
    "WorkerSettings",
]
