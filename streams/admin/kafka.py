"""The few verbs of Kafka's admin client that are used here, each all or nothing to its caller, with our errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the module names its exports nowhere
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from streams.kafka import KafkaSettings, mapped_errors

# A controller that is being elected takes seconds to answer; a broker that is not there never would.
TIMEOUT_S: Final = 15.0


class Cluster(NamedTuple):
    """What the cluster says of itself."""

    brokers: int
    partitions: dict[str, int]  # of every topic


def admin_client(settings: KafkaSettings) -> AdminClient:
    """Return an admin client. Raises `ConfigError` for options that librdkafka does not know."""
    with mapped_errors("opening Kafka's admin client"):
        return AdminClient(settings.client())


def look(admin: AdminClient) -> Cluster:
    """Return the brokers that are up and all topics. Raises `Unavailable` if none answers."""
    with mapped_errors("listing the topics"):
        metadata = admin.list_topics(timeout=TIMEOUT_S)
    return Cluster(len(metadata.brokers), {name: len(topic.partitions) for name, topic in metadata.topics.items()})


def topic_configs(admin: AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    """Return all settings of the named topics, which must exist, defaults included."""
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    with mapped_errors("reading the settings of topics"):
        futures = admin.describe_configs(resources, request_timeout=TIMEOUT_S)
        found = {resource.name: future.result() for resource, future in futures.items()}
    return {name: {entry.name: entry.value for entry in entries.values()} for name, entries in found.items()}


def create_topic(admin: AdminClient, name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> bool:
    """Create a topic; False if it was there, as when another process was quicker."""
    new = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(configs))
    with mapped_errors(f"creating the topic {name}"):
        try:
            admin.create_topics([new], operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)[name].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
    return True


def set_topic_configs(admin: AdminClient, name: str, configs: Mapping[str, str]) -> None:
    """Set the given settings of a topic, and leave its others alone."""
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    with mapped_errors(f"configuring the topic {name}"):
        admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource].result()
