"""Least privilege on a real broker: each role can do its whole work with its own rights, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from streams import clock
from streams.admin.acls import Operation, Resource, Right, Role, apply, rights
from streams.admin.kafka import admin_client
from streams.admin.topics import Layout, ensure
from streams.client.share_group import prepare
from streams.client.status import StatusReader
from streams.core import reasons
from streams.core.snapshot import FlowView
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.partition import open_reader, read_to_end
from streams.wire import PARTITIONER, decode_rejection, encode_request, intake_topic
from tests.integration.processes import ChildProcess, SchedulerProcess
from tests.integration.secured import ADMIN, SecuredKafka
from tests.integration.topics import read_topic

SHARDS: Final = 2
WAIT_S: Final = 60.0
TENANT: Final = "acme"


@dataclass(frozen=True)
class Place:
    """A deployment in which each role has a user of its own, called as the role is, with the deployment's prefix."""

    kafka: SecuredKafka
    prefix: str
    folder: Path

    def user(self, role: Role) -> str:
        return f"{self.prefix}{role}"

    def settings(self, role: Role) -> KafkaSettings:
        return self.kafka.settings(self.user(role), self.prefix)

    def arguments(self, user: str) -> list[str]:
        config = self.kafka.config_file(user)
        return ["--kafka", self.kafka.servers, "--prefix", self.prefix, "--kafka-config", str(config)]

    def run(self, user: str, *command: str) -> Any:
        """Run a command as this user with --json; return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "streams.cli", *command, "--json", *self.arguments(user)],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def worker(self, name: str, *options: str) -> ChildProcess:
        arguments = ["worker", "--simulate", *options, *self.arguments(self.user(Role.WORKER))]
        return ChildProcess(self.folder, name, "streams.cli", *arguments)


def settle(kafka: SecuredKafka, prefix: str, folder: Path) -> Place:
    """Give every role's user its rights."""
    here = Place(kafka, prefix, folder)
    admin = admin_client(kafka.settings(ADMIN, prefix))
    for role in Role:
        apply(admin, f"User:{here.user(role)}", rights(role, here.settings(role), shards=SHARDS))
    return here


@pytest.fixture
def place(secured: SecuredKafka, prefix: str, tmp_path: Path) -> Place:
    return settle(secured, prefix, tmp_path)


def ended(place: Place, count: int) -> Callable[[], bool]:
    """Whether so many of the tenant's runs have ended, as an operator sees it."""
    reader = StatusReader(place.settings(Role.OPERATOR))
    reader.catch_up()

    def look() -> bool:
        reader.follow(0.2)
        views = [status.view for status in reader.statuses]
        done = sum(view.ended for view in views if isinstance(view, FlowView) and view.tenant == TENANT)
        if done >= count:
            reader.close()
        return done >= count

    return look


def test_each_role_does_its_work_with_its_rights_alone(place: Place) -> None:
    by_name = place.user
    again = place.run(ADMIN, "acls", "--role", "worker", "--principal", f"User:{by_name(Role.WORKER)}", "--apply")
    assert not any(right["granted"] for right in again["rights"]), "they were granted already, all of them"
    made = place.run(by_name(Role.ADMIN), "topics", "--shards", str(SHARDS), "--dispatch-partitions", "2")
    assert (len(made["create"]), made["prepared_group"]) == (10, f"{place.prefix}workers")
    place.run(by_name(Role.ADMIN), "policy", "apply")
    scheduler = SchedulerProcess(
        place.folder,
        "scheduler",
        kafka=place.kafka.servers,
        prefix=place.prefix,
        shards=SHARDS,
        kafka_config=place.kafka.config_file(by_name(Role.SCHEDULER)),
        checkpoint_interval_s=1,
    )
    with scheduler:
        scheduler.wait_until_ready({0, 1})
        submit = ["submit", "--tenant", TENANT, "--workflow", "w", "--payload", '{"tokens": 7}', "--run-id"]
        with place.worker("sharing") as worker:
            place.run(by_name(Role.PRODUCER), *submit, "first")
            clock.wait_until(ended(place, 1), WAIT_S, what="a run through the share group")
            worker.send(signal.SIGTERM)
        # Takes one back while nobody works, and is told of a refusal.
        place.run(by_name(Role.PRODUCER), *submit, "unwanted")
        place.run(by_name(Role.PRODUCER), "cancel", TENANT, "unwanted")
        place.run(by_name(Role.PRODUCER), *submit, "first")
        assert b'"duplicate"' in rejection(place)
        # A group has one kind of members, so the classic ones have another.
        nightly = f"{place.prefix}nightly"
        role_rights = rights(Role.WORKER, place.settings(Role.WORKER), group=nightly)
        apply(admin_client(place.kafka.settings(ADMIN, "")), f"User:{by_name(Role.WORKER)}", role_rights)
        with place.worker("classic", "--intake", "classic", "--group", nightly):
            place.run(by_name(Role.PRODUCER), *submit, "second")
            clock.wait_until(ended(place, 3), WAIT_S, what="a run through the classic group")
        shown = place.run(by_name(Role.OPERATOR), "status")
        assert {row["tenant"] for row in shown["tenants"]} == {TENANT}
        assert scheduler.stop() == 0
    for topic in place.settings(Role.AUDITOR).topics:
        records = read(place, Role.AUDITOR, topic, range(SHARDS))
        assert records or topic == place.settings(Role.AUDITOR).topics.board, topic
    # It moves to one shard, by a user that may act on both sides.
    mover, to = by_name(Role.MIGRATION_FROM), f"{place.prefix}b."
    filling = rights(Role.MIGRATION_TO, KafkaSettings(servers=place.kafka.servers, prefix=to))
    apply(admin_client(place.kafka.settings(ADMIN, "")), f"User:{mover}", filling)
    moved = place.run(mover, "migrate", "shards", "1", "--to", to)
    assert (moved["equal"], moved["opened"]) == (True, True)


def rejection(place: Place) -> bytes:
    """The first refusal, as a producer gets it in its group."""
    kafka = place.settings(Role.PRODUCER)
    group = f"{place.prefix}producers"
    consumer = Consumer(kafka.client(group_id=group, auto_offset_reset="earliest", isolation_level="read_committed"))
    consumer.subscribe([kafka.topics.rejected])
    try:
        found: list[bytes] = []

        def look() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message.value() or b"")
            return bool(found)

        clock.wait_until(look, WAIT_S, what="a rejection")
        return found[0]
    finally:
        consumer.close()


def read(place: Place, role: Role, topic: str, partitions: range) -> int:
    """How many records a role can read from a topic. Raises `ConfigError` if it may not."""
    with open_reader(place.settings(role), "test") as reader:
        known = reader.list_topics(topic, timeout=WAIT_S).topics[topic]
        if known.error is not None:
            raise ConfigError(known.error.str())
        there = [partition for partition in partitions if partition in known.partitions]
        return sum(1 for partition in there for _ in read_to_end(reader, topic, partition))


@pytest.fixture(scope="module")
def still(secured: SecuredKafka, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Topics that nobody serves, so that they can be written to at will."""
    here = settle(secured, "still.", tmp_path_factory.mktemp("still"))
    ensure(admin_client(secured.settings(ADMIN, here.prefix)), Layout(prefix=here.prefix))
    return here


def test_no_role_writes_or_reads_what_it_should_not(still: Place) -> None:
    """Every role at every topic: the broker agrees with the data, in both directions."""
    for role in Role:
        told = rights(role, still.settings(role))
        topics = still.settings(role).topics
        may = {
            operation: {topic for topic in topics if Right(Resource.TOPIC, topic, operation) in told}
            for operation in (Operation.READ, Operation.WRITE)
        }
        assert written(still, role) == may[Operation.WRITE], role
        assert readable(still, role) == may[Operation.READ], role


def test_a_right_that_is_taken_away_is_missed(still: Place) -> None:
    """Samples of those that do not meet the eye: who only reads has to ask about a group that nobody joins."""
    user = f"{still.prefix}short"
    kafka = still.kafka.settings(user, still.prefix)
    short = [right for right in rights(Role.AUDITOR, kafka) if right.resource is not Resource.GROUP]
    apply(admin_client(still.kafka.settings(ADMIN, still.prefix)), f"User:{user}", short)
    with pytest.raises(ConfigError, match="Group authorization failed"), open_reader(kafka, "test") as reader:
        list(read_to_end(reader, kafka.topics.state, 0))
    with pytest.raises(ConfigError, match=r"reading the settings of share group .* authorization failed"):
        prepare(kafka, kafka.worker_group)


def written(place: Place, role: Role) -> set[str]:
    """The topics that take a record of a role; all others must refuse it for its rights."""
    taken: set[str] = set()
    kafka = place.settings(role)

    def on_delivery(topic: str, error: KafkaError | None, _: object) -> None:
        if error is None:
            taken.add(topic)
        else:
            assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error

    # Not idempotent: who may write nowhere gets no producer id, and would not be asked topic by topic.
    producer = Producer(kafka.client(partitioner=PARTITIONER, acks="all"))
    for topic in kafka.topics:
        producer.produce(topic, b"x", b"k", on_delivery=partial(on_delivery, topic))
    assert producer.flush(WAIT_S) == 0
    return taken


def readable(place: Place, role: Role) -> set[str]:
    """The topics that a role can read; all others must refuse it for its rights."""
    refused = []
    for topic in place.settings(role).topics:
        try:
            read(place, role, topic, range(1))
        except ConfigError as error:
            refused.append((topic, str(error)))
    assert all("authorization failed" in why for _, why in refused), refused
    return set(place.settings(role).topics) - {topic for topic, _ in refused}


def test_a_tenant_files_in_its_own_name_only(still: Place) -> None:
    """With the rights of a gate, and those of a producer of one tenant; the topics are made with an admin's."""
    user = f"{still.prefix}{TENANT}"
    apply(
        admin_client(still.kafka.settings(ADMIN, "")),
        f"User:{user}",
        rights(Role.PRODUCER, still.settings(Role.PRODUCER), own_topic_of=TENANT),
    )
    added = still.run(still.user(Role.ADMIN), "gate", "add", TENANT, "globex")
    assert [made["created"] for made in added] == [True, True]
    kafka = still.kafka.settings(user, still.prefix)
    own, others = intake_topic(still.prefix, TENANT), intake_topic(still.prefix, "globex")
    still.run(user, "submit", "--own-topic-of", TENANT, "--tenant", TENANT, "--workflow", "w", "--run-id", "mine")
    producer = Producer(kafka.client())
    refused: list[tuple[str | None, int]] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append((message.topic(), error.code()))

    lie = encode_request(tenant="globex", run_id="theirs", workflow="w")
    closed = (others, kafka.topics.requests, kafka.topics.rejected)
    for topic in (own, *closed):
        producer.produce(topic, lie, b"globex", on_delivery=on_delivery)
    assert producer.flush(WAIT_S) == 0
    assert sorted(refused) == sorted((topic, KafkaError.TOPIC_AUTHORIZATION_FAILED) for topic in closed)
    with ChildProcess(still.folder, "gate", "streams.cli", "gate", *still.arguments(still.user(Role.GATE))) as gate:

        def seen(topic: str) -> list[bytes]:
            """What the gate has written: other tests write here too."""
            records = read_topic(still.kafka.plain, topic)
            return [each.value or b"" for each in records if own in f"{each.value!r}{each.headers}"]

        clock.wait_until(lambda: seen(kafka.topics.rejected), WAIT_S, what="the refusal of the lie")
        assert gate.stop() == 0
    [passed] = seen(kafka.topics.requests)
    assert b'"mine"' in passed
    [rejected] = map(decode_rejection, seen(kafka.topics.rejected))
    assert (rejected.reason, rejected.tenant, rejected.original) == (reasons.NOT_YOUR_TENANT, TENANT, lie)


@pytest.fixture
def thief(still: Place) -> KafkaSettings:
    """A worker, who may do nothing with things that are no topics, but for its own group."""
    return still.settings(Role.WORKER)


def test_nobody_else_can_fence_a_scheduler(thief: KafkaSettings) -> None:
    ids = [right.name for right in rights(Role.SCHEDULER, thief) if right.resource is Resource.TRANSACTIONAL_ID]
    producer = Producer(thief.client(transactional_id=ids[0]))
    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(WAIT_S)
    assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_nobody_else_can_join_the_schedulers_and_take_their_shards(thief: KafkaSettings) -> None:
    group = next(right.name for right in rights(Role.SCHEDULER, thief) if right.resource is Resource.GROUP)
    consumer = Consumer(thief.client(group_id=group))
    consumer.subscribe([thief.topics.dispatch])
    told: list[int] = []

    def refused() -> bool:
        message = consumer.poll(0.2)
        error = None if message is None else message.error()
        told.extend([] if error is None else [error.code()])
        return KafkaError.GROUP_AUTHORIZATION_FAILED in told

    clock.wait_until(refused, WAIT_S, what="the refusal")
    consumer.close()


def test_a_worker_cannot_change_how_its_group_reads(thief: KafkaSettings) -> None:
    """It says so, and who does it, when nobody has prepared the group."""
    with pytest.raises(ConfigError, match="fairstream topics"):
        prepare(thief, thief.worker_group)


def test_only_who_may_alter_the_cluster_hands_out_rights(still: Place) -> None:
    admin = admin_client(still.settings(Role.ADMIN))
    with pytest.raises(ConfigError, match="check the credentials"):
        apply(admin, f"User:{still.user(Role.ADMIN)}", rights(Role.SCHEDULER, still.settings(Role.SCHEDULER)))
