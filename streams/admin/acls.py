"""What each role may do in Kafka, as data: the least with which it can do its whole work.

Kafka allows whoever may read, write or alter a thing to describe it too, and whoever may alter its settings to see
them; so that is not said again. Names are whole ones (Kafka's `LITERAL`): a prefix would reach into a deployment whose
own prefix begins with ours. Only what is not known yet is named by its beginning: the intake topics of tenants, and
gates. No role may change rights: that takes `Alter` on the cluster, and is for whoever hands out the roles.

Here everything is pure; `apply` alone talks to Kafka.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.admin.kafka import Binding, acls_of, add_acls
from streams.errors import ConfigError
from streams.kafka import KafkaSettings, migration_id, scheduler_group, transactional_id
from streams.wire.intakes import intake_prefix, intake_topic
from streams.wire.topics import TOPICS

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


class Role(StrEnum):
    """Who works with a deployment."""

    SCHEDULER = "scheduler"
    PRODUCER = "producer"  # files and cancels runs, and sees what was refused
    WORKER = "worker"
    AUDITOR = "auditor"  # reads everything
    OPERATOR = "operator"  # sees what is shown to people: status, refusals, policy
    GATE = "gate"  # passes on what stands on the tenants' own topics
    ADMIN = "admin"  # makes topics, states the policy, prepares the workers' group
    MIGRATION_FROM = "migration-from"  # moves the deployment to another number of shards
    MIGRATION_TO = "migration-to"  # makes the deployment that another one moves to; one user has both


class Resource(StrEnum):
    """What a right is about, as `kafka-acls.sh` spells it; in its name as the protocol does."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"


class Operation(StrEnum):
    """What is allowed, as `kafka-acls.sh` spells it; in its name as the protocol does."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"


class Right(NamedTuple):
    """One operation on one thing."""

    resource: Resource
    name: str
    operation: Operation
    prefixed: bool = False  # on everything whose name begins so

    def thing(self) -> tuple[Resource, str, bool]:
        """Return what it is about."""
        return self.resource, self.name, self.prefixed


READ, WRITE, DESCRIBE, SETTINGS = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS

_ALL_TOPICS: Final = tuple(topic.name for topic in TOPICS)

# By topic, without the prefix.
_ON_TOPICS: Final[dict[Role, dict[str, tuple[Operation, ...]]]] = {
    Role.SCHEDULER: {
        # What stands in a wrong partition is forwarded. How large a record each topic takes, is asked.
        "requests": (READ, WRITE, SETTINGS),
        "completions": (READ, WRITE, SETTINGS),
        "state": (READ, WRITE, SETTINGS),
        "dispatch": (WRITE, SETTINGS),
        "rejected": (WRITE, SETTINGS),
        "journal": (WRITE, SETTINGS),
        "policy": (READ,),
        "status": (WRITE,),
        "checkpoints": (READ, WRITE),  # it looks how old the last one is
        "board": (DESCRIBE,),  # at its start it looks whether all topics are there
    },
    Role.PRODUCER: {"requests": (WRITE,), "rejected": (READ,)},
    Role.WORKER: {"dispatch": (READ,), "completions": (WRITE,)},
    Role.AUDITOR: dict.fromkeys(_ALL_TOPICS, (READ,)),
    Role.OPERATOR: {"status": (READ,), "rejected": (READ,), "policy": (READ,)},
    Role.GATE: {"requests": (WRITE,), "rejected": (WRITE,)},
    Role.ADMIN: {
        **dict.fromkeys(_ALL_TOPICS, (DESCRIBE, Operation.CREATE, Operation.ALTER_CONFIGS)),
        "policy": (READ, WRITE, Operation.CREATE, Operation.ALTER_CONFIGS),
    },
    Role.MIGRATION_FROM: {
        "requests": (READ,),
        "completions": (READ,),
        "state": (READ, WRITE),
        "policy": (READ,),
        # It looks whether they are there, and how many partitions they have.
        "journal": (DESCRIBE,),
        "dispatch": (DESCRIBE,),
    },
    Role.MIGRATION_TO: {
        **dict.fromkeys(_ALL_TOPICS, (DESCRIBE, Operation.CREATE, Operation.ALTER_CONFIGS)),
        **dict.fromkeys(
            ("requests", "completions", "state", "policy", "checkpoints"),
            (READ, WRITE, Operation.CREATE, Operation.ALTER_CONFIGS),
        ),
    },
}

# On the intake topics of all tenants.
_ON_INTAKES: Final[dict[Role, tuple[Operation, ...]]] = {
    Role.GATE: (READ,),
    Role.ADMIN: (DESCRIBE, Operation.CREATE, Operation.ALTER_CONFIGS),
}

# On the group that the role joins; the admin's is the workers', whose settings are the broker's to keep.
_ON_GROUP: Final[dict[Role, tuple[Operation, ...]]] = {
    Role.SCHEDULER: (READ,),
    Role.PRODUCER: (READ,),
    Role.WORKER: (READ, SETTINGS),
    Role.GATE: (READ,),
    Role.ADMIN: (Operation.ALTER_CONFIGS,),
}

# Those that may take the shards: the last owner of a shard's transactional id is the shard's.
_TAKE_SHARDS: Final = (Role.SCHEDULER, Role.MIGRATION_FROM, Role.MIGRATION_TO)

_PRINCIPAL: Final = re.compile(r"[A-Za-z]+:[^*\s].*")


class Outcome(NamedTuple):
    """What applying came to."""

    granted: tuple[Right, ...]
    held: tuple[Right, ...]  # before


def rights(
    role: Role,
    kafka: KafkaSettings,
    *,
    shards: int = 1,
    group: str | None = None,
    own_topic_of: str | None = None,
) -> tuple[Right, ...]:
    """Return what a role needs, each thing's together. `group` is the one it joins, if it is not the usual one.

    A scheduler has a transactional id for each of `shards`, and so has a migration, which joins no group: its `group`
    is the schedulers'. A producer with `own_topic_of` files for that tenant only,
    through a gate, and sees nobody's refusals. Raises `ConfigError` for a group that the role does not join, and for
    an own topic of another role; `BadRecord` for a tenant that cannot have one.
    """
    if own_topic_of is not None:
        if role is not Role.PRODUCER or group is not None:
            raise ConfigError("is for producers, who then join no group", field="own_topic_of", value=own_topic_of)
        return (Right(Resource.TOPIC, intake_topic(kafka.prefix, own_topic_of), WRITE),)
    found = [
        Right(Resource.TOPIC, kafka.prefix + topic, operation)
        for topic, operations in _ON_TOPICS[role].items()
        for operation in operations
    ]
    joined = _joined(role, kafka, group)
    if joined is not None:
        found += [Right(Resource.GROUP, joined, operation) for operation in _ON_GROUP.get(role, ())]
    intakes = intake_prefix(kafka.prefix)
    found += [Right(Resource.TOPIC, intakes, operation, prefixed=True) for operation in _ON_INTAKES.get(role, ())]
    if role is Role.GATE:
        found.append(Right(Resource.TRANSACTIONAL_ID, f"{kafka.gate_group}-", WRITE, prefixed=True))
    else:
        # Joined by nobody; but a reader that joins no group has to ask who coordinates this one.
        found.append(Right(Resource.GROUP, kafka.reader_group, DESCRIBE))
    if role in _TAKE_SHARDS:
        assert joined is not None, "schedulers are a group"
        ids = [transactional_id(joined, shard) for shard in range(shards)]
        ids += [migration_id(joined)] * (role is Role.MIGRATION_TO)
        found += [Right(Resource.TRANSACTIONAL_ID, each, WRITE) for each in ids]
    return tuple(found)


def role_named(name: str) -> Role:
    """Return the role of this name. Raises `ConfigError` if there is none."""
    try:
        return Role(name)
    except ValueError:
        raise ConfigError(f"must be one of {', '.join(Role)}", field="role", value=name) from None


def check_principal(principal: str) -> str:
    """Return it. Raises `ConfigError` unless it is one as Kafka's authorizer knows it, and not everybody."""
    if not _PRINCIPAL.fullmatch(principal):
        raise ConfigError("name one, as in User:name", field="principal", value=principal)
    return principal


def apply(admin: AdminClient, principal: str, wanted: Iterable[Right]) -> Outcome:
    """Grant what is missing, from any host. What the principal may do beyond that is left alone.

    Raises `ConfigError` if we may not, or if this Kafka has no authorizer; `Unavailable` if it does not answer.
    """
    check_principal(principal)
    has = acls_of(admin, principal)
    granted: list[Right] = []
    held: list[Right] = []
    for right in wanted:
        (held if _binding(right) in has else granted).append(right)
    add_acls(admin, principal, map(_binding, granted))
    return Outcome(tuple(granted), tuple(held))


def commands(principal: str, wanted: Iterable[Right], servers: str) -> Iterator[str]:
    """Yield the same as commands for `kafka-acls.sh`, which comes with Kafka: one for each thing."""
    for (resource, name, prefixed), those in groupby(wanted, key=Right.thing):
        words = ["kafka-acls.sh", "--bootstrap-server", servers, "--add"]
        words += ["--allow-principal", check_principal(principal)]
        words += [word for right in those for word in ("--operation", right.operation)]
        if prefixed:
            words += ["--resource-pattern-type", "prefixed"]
        yield shlex.join([*words, f"--{resource}", name])


def _joined(role: Role, kafka: KafkaSettings, group: str | None) -> str | None:
    usual = {
        Role.SCHEDULER: scheduler_group(kafka.prefix),
        Role.PRODUCER: f"{kafka.prefix}producers",
        Role.WORKER: kafka.worker_group,
        Role.GATE: kafka.gate_group,
        Role.ADMIN: kafka.worker_group,
        Role.MIGRATION_FROM: scheduler_group(kafka.prefix),
        Role.MIGRATION_TO: scheduler_group(kafka.prefix),
    }
    if group is not None and role not in usual:
        raise ConfigError(f"the role {role} joins none", field="group", value=group)
    return group or usual.get(role)


def _binding(right: Right) -> Binding:
    pattern = "PREFIXED" if right.prefixed else "LITERAL"
    return Binding(right.resource.name, right.name, right.operation.name, pattern)
