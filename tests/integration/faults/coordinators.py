"""Which broker coordinates a transactional id or a consumer group."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streams import clock

_ELECTION_S: Final = 60.0
_ASK_S: Final = 2.0


class Kind(StrEnum):
    """What is coordinated, by the topic whose partitions' leaders are the coordinators."""

    TRANSACTIONS = "__transaction_state"
    GROUPS = "__consumer_offsets"


def coordinator_of(servers: str, kind: Kind, name: str) -> int:
    """The node that coordinates this transactional id or group now; waits while a new one is being elected."""
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def leader() -> int:
        try:
            partitions = client.list_topics(kind, timeout=_ASK_S).topics[kind].partitions
        except KafkaException:
            return 0
        return max(0, partitions[partition_of(name, len(partitions))].leader) if partitions else 0

    return clock.wait_until(leader, _ELECTION_S, what=f"the coordinator of {name}")


def partition_of(name: str, partitions: int) -> int:
    """As brokers do: Java's hash of the name, made positive."""
    number = 0
    units = name.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        number = (31 * number + (high << 8) + low) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def members_of(servers: str, group: str) -> int:
    """How many members a consumer group has."""
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    return len(client.describe_consumer_groups([group], request_timeout=_ELECTION_S)[group].result().members)
