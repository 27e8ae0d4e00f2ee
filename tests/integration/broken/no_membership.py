"""A gate that hands in its offsets as no member of the group: then Kafka takes them unseen, a zombie's too."""

import sys

from confluent_kafka import Consumer

from streams.gate.turns import Turns
from tests.integration.faulty_gate import main


def _of_no_member(_self: Turns) -> bytes:
    """What a consumer shows that has joined nothing."""
    servers, prefix = sys.argv[1:3]
    shown: bytes = Consumer({"bootstrap.servers": servers, "group.id": f"{prefix}gate"}).consumer_group_metadata()
    return shown


Turns.membership = property(_of_no_member)  # type: ignore[assignment]

if __name__ == "__main__":
    main(*sys.argv[1:])
