"""The workers' share group: the settings that Kafka keeps per group (KIP-932)."""

from __future__ import annotations

from typing import Final

from confluent_kafka.admin import AdminClient

from streams.admin.kafka import set_configs

# Read only what was committed, and do not lose what was dispatched before the first worker came: both are
# settings of the group, not of its members, and both have the other value by default.
WORKER_GROUP: Final = {
    "share.isolation.level": "read_committed",
    "share.auto.offset.reset": "earliest",
}


def configure_worker_group(admin: AdminClient, group: str) -> None:
    """Set the group up for reading dispatches. Idempotent; to be done before its first member joins.

    Raises `ConfigError` if the broker knows no share groups (before Kafka 4.2), `Unavailable` if it does not answer.
    """
    set_configs(admin, "group", group, WORKER_GROUP)
