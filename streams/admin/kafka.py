"""The few verbs of Kafka's admin client that are used here, each all or nothing to its caller, with our errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the module names its exports nowhere
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    TopicDescription,
)

from streams.kafka import KafkaSettings, first_answer, mapped_errors

# A controller that is being elected takes seconds to answer; a broker that is not there never would.
TIMEOUT_S: Final = 15.0

_ANY_HOST: Final = "*"


class Cluster(NamedTuple):
    """What the cluster says of itself."""

    brokers: int
    partitions: dict[str, int]  # of every topic


class Binding(NamedTuple):
    """An operation that is allowed on the thing of this name, from any host: names of confluent-kafka's enums."""

    resource: str
    name: str
    operation: str
    pattern: str  # LITERAL: that one; PREFIXED: all whose names begin so


class _Admin(AdminClient):
    """One whose first question, which is for the topics, says so if Kafka does not let us in."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings.client())
        self._settings = settings

    def list_topics(self, topic: str | None = None, timeout: float = TIMEOUT_S) -> ClusterMetadata:
        """Raises `ConfigError`, `Unavailable` and others of ours, with the name of the Kafka that was asked."""
        doing = f"asking {self._settings.servers} for its topics"

        def ask(timeout_s: float) -> ClusterMetadata:
            return super(_Admin, self).list_topics(topic, timeout_s)

        with mapped_errors(doing):
            return first_answer(self._settings, self, ask, timeout, doing)


def admin_client(settings: KafkaSettings) -> AdminClient:
    """Return an admin client. Raises `ConfigError` for options that librdkafka does not know."""
    with mapped_errors("opening Kafka's admin client"):
        return _Admin(settings)


def look(admin: AdminClient) -> Cluster:
    """Return the brokers that are up and all topics. Raises `Unavailable` if none answers."""
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


def topic_ids(admin: AdminClient, names: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> dict[str, str]:
    """Return Kafka's ids of those topics that exist, under the keys of `names`. A topic made anew has another id.

    Raises `Unavailable` if Kafka does not answer.
    """
    with mapped_errors("asking for the ids of topics"):
        futures = admin.describe_topics(TopicCollection(list(names.values())), request_timeout=timeout_s)
        found = {key: _described(futures[name]) for key, name in names.items()}
    return {key: str(topic.topic_id) for key, topic in found.items() if topic is not None}


def _described(future: Future[TopicDescription]) -> TopicDescription | None:
    try:
        return future.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def create_topics(admin: AdminClient, topics: Iterable[NewTopic]) -> frozenset[str]:
    """Create topics, all in one request: a tenth of the time. Return the names of those that were there already.

    If Kafka does not take one of them, others may have been created.
    """
    futures = {}
    with mapped_errors("creating topics"):
        new = list(topics)
        if new:
            futures = admin.create_topics(new, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)
    return frozenset(name for name, future in futures.items() if not _created(name, future))


def _created(name: str, future: Future[None]) -> bool:
    with mapped_errors(f"creating the topic {name}"):
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
    return True


def create_topic(admin: AdminClient, name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> bool:
    """Create a topic; False if it was there, as when another process was quicker."""
    return not create_topics(admin, [new_topic(name, partitions, replication, configs)])


def new_topic(name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> NewTopic:
    """Return a topic as `create_topics` takes it."""
    return NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(configs))


def set_topic_configs(admin: AdminClient, name: str, configs: Mapping[str, str]) -> None:
    """Set the given settings of a topic, and leave its others alone."""
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    with mapped_errors(f"configuring the topic {name}"):
        admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource].result()


def acls_of(admin: AdminClient, principal: str) -> frozenset[Binding]:
    """Return what a principal is allowed, from any host."""
    wanted = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type] # any; so says the documentation
        ResourcePatternType.ANY,
        principal,
        _ANY_HOST,
        AclOperation.ANY,
        AclPermissionType.ALLOW,
    )
    with mapped_errors(f"reading the rights of {principal}"):
        found = admin.describe_acls(wanted, request_timeout=TIMEOUT_S).result()
    return frozenset(
        Binding(acl.restype.name, acl.name, acl.operation.name, acl.resource_pattern_type.name) for acl in found
    )


def add_acls(admin: AdminClient, principal: str, bindings: Iterable[Binding]) -> None:
    """Allow a principal this, from any host. What is allowed already stays so."""
    acls = [
        AclBinding(
            ResourceType[resource],
            name,
            ResourcePatternType[pattern],
            principal,
            _ANY_HOST,
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for resource, name, operation, pattern in bindings
    ]
    if not acls:
        return
    with mapped_errors(f"granting rights to {principal}"):
        for future in admin.create_acls(acls, request_timeout=TIMEOUT_S).values():
            future.result()
