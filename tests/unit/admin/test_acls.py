"""Who may do what, as data: what no role may, whatever else changes; and how it is shown."""

from __future__ import annotations

import itertools
import shlex

import pytest

from streams.admin.acls import Operation, Resource, Right, Role, check_principal, commands, rights, role_named
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.wire import intake_topic

KAFKA = KafkaSettings(servers="broker:9093", prefix="runs.")
TOPICS = KAFKA.topics


def writers(topic: str) -> set[Role]:
    return {role for role in Role if Right(Resource.TOPIC, topic, Operation.WRITE) in rights(role, KAFKA)}


def test_each_topic_is_written_by_those_of_the_design_only() -> None:
    scheduler, producer, worker, gate, admin = Role.SCHEDULER, Role.PRODUCER, Role.WORKER, Role.GATE, Role.ADMIN
    moved, filled = Role.MIGRATION_FROM, Role.MIGRATION_TO
    assert {topic: writers(topic) for topic in TOPICS} == {
        TOPICS.requests: {producer, gate, scheduler, filled},
        TOPICS.completions: {worker, scheduler, filled},
        TOPICS.dispatch: {scheduler},
        TOPICS.rejected: {scheduler, gate},
        TOPICS.policy: {admin, filled},
        TOPICS.journal: {scheduler},
        TOPICS.state: {scheduler, moved, filled},
        TOPICS.board: set(),
        TOPICS.status: {scheduler},
        TOPICS.checkpoints: {scheduler, filled},
    }


def test_who_only_looks_writes_and_alters_nothing() -> None:
    for role in (Role.AUDITOR, Role.OPERATOR):
        assert {right.operation for right in rights(role, KAFKA)} == {Operation.READ, Operation.DESCRIBE}
    assert {right.name for right in rights(Role.AUDITOR, KAFKA) if right.operation is Operation.READ} == set(TOPICS)


@pytest.mark.parametrize("role", Role)
def test_no_role_reaches_into_another_deployment_or_has_the_same_right_twice(role: Role) -> None:
    own, others = (set(rights(role, KafkaSettings(servers="x", prefix=prefix))) for prefix in ("runs.", "runs.b."))
    assert own.isdisjoint(others)
    assert len(own) == len(rights(role, KAFKA))


def test_a_scheduler_has_a_transactional_id_for_each_shard_and_no_more() -> None:
    def ids(shards: int, group: str | None) -> list[str]:
        found = rights(Role.SCHEDULER, KAFKA, shards=shards, group=group)
        return [right.name for right in found if right.resource is Resource.TRANSACTIONAL_ID]

    assert ids(2, None) == ["fairstream-0", "fairstream-1"]
    assert ids(1, "mine") == ["mine-0"]


def test_a_migration_takes_the_shards_of_both_sides_and_joins_nobody() -> None:
    def beside_topics(role: Role, prefix: str, shards: int) -> list[tuple[str, Operation]]:
        found = rights(role, KafkaSettings(servers="x", prefix=prefix), shards=shards)
        return [(right.name, right.operation) for right in found if right.resource is not Resource.TOPIC]

    assert beside_topics(Role.MIGRATION_FROM, "runs.", 1) == [
        ("runs.readers", Operation.DESCRIBE),
        ("fairstream-0", Operation.WRITE),
    ]
    assert beside_topics(Role.MIGRATION_TO, "b.", 2) == [
        ("b.readers", Operation.DESCRIBE),
        ("fairstream-b-0", Operation.WRITE),
        ("fairstream-b-1", Operation.WRITE),
        ("fairstream-b-migration", Operation.WRITE),
    ]


def test_a_producer_of_one_tenant_may_write_to_its_own_topic_and_do_nothing_else() -> None:
    assert rights(Role.PRODUCER, KAFKA, own_topic_of="a/b") == (
        Right(Resource.TOPIC, "runs.requests.of.a_2fb", Operation.WRITE),
    )
    with pytest.raises(ConfigError, match="producers"):
        rights(Role.GATE, KAFKA, own_topic_of="a")
    with pytest.raises(ConfigError, match="no group"):
        rights(Role.PRODUCER, KAFKA, own_topic_of="a", group="g")


def test_a_gate_reads_the_topics_of_all_tenants_and_what_stands_beside_them_is_not_read() -> None:
    read = [right for right in rights(Role.GATE, KAFKA) if right.resource is Resource.TOPIC and right.prefixed]
    assert read == [Right(Resource.TOPIC, "runs.requests.of.", Operation.READ, prefixed=True)]
    assert intake_topic("runs.", "acme").startswith(read[0].name)
    assert not any(topic.startswith(read[0].name) for topic in TOPICS)
    [command] = commands("User:gate", read, "a:1")
    assert "--operation Read --resource-pattern-type prefixed --topic runs.requests.of." in command


def test_a_group_of_ones_own_replaces_the_usual_one() -> None:
    found = {right.name for right in rights(Role.WORKER, KAFKA, group="night") if right.resource is Resource.GROUP}
    assert found == {"night", KAFKA.reader_group}


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.OPERATOR])
def test_a_group_for_who_joins_none_is_refused(role: Role) -> None:
    with pytest.raises(ConfigError) as caught:
        rights(role, KAFKA, group="x")
    assert caught.value.field == "group"


@pytest.mark.parametrize("principal", ["", "bob", "User:", "User:*", "*", "User: bob", "User:a\nb"])
def test_what_is_no_single_principal_is_refused(principal: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_principal(principal)
    assert caught.value.field == "principal"


def test_a_certificates_name_is_a_principal() -> None:
    assert check_principal("User:CN=worker 1,OU=runs") == "User:CN=worker 1,OU=runs"


def test_an_unknown_role_is_refused_with_those_there_are() -> None:
    assert role_named("worker") is Role.WORKER
    with pytest.raises(ConfigError, match="scheduler, producer, worker"):
        role_named("root")


def test_the_commands_say_the_same_and_no_shell_reads_into_them() -> None:
    wanted = rights(Role.WORKER, KAFKA, group="it's; rm -rf ~")
    words = [shlex.split(line) for line in commands("User:$(id)", wanted, "a:1,b:2")]
    assert words[0][:4] == ["kafka-acls.sh", "--bootstrap-server", "a:1,b:2", "--add"]
    told = {
        Right(Resource(line[-2].removeprefix("--")), line[-1], Operation(operation))
        for line in words
        for option, operation in itertools.pairwise(line)
        if option == "--operation"
    }
    assert told == set(wanted)
    assert all(line[line.index("--allow-principal") + 1] == "User:$(id)" for line in words)
