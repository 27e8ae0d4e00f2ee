"""The whole of a migration against a Kafka of lists: killed before any transaction, or met by others."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from streams.admin.kafka import Cluster
from streams.admin.migration import migrate, writing
from streams.admin.migration.copying import MOVED_FROM
from streams.admin.migration.migrate import FILL, MOVE, Migration
from streams.admin.migration.sides import pair
from streams.admin.policy import InForce
from streams.audit.checkpoints import TOPIC, latest_before
from streams.audit.recording import MemoryRecording, Rec
from streams.core.policy import Leases
from streams.errors import ConfigError, OwnershipLost
from streams.kafka import KafkaSettings
from streams.rows import PositionsRecord
from streams.transactions import Out
from streams.wire import PolicyChange, encode_request
from tests.builders import make_policy
from tests.property.deployments import Deployment
from tests.unit.admin.migration.fakes import NEW, OLD, Crash, FakeKafka, FakeWriter

UNREAD = 5
LONG = 10  # records, which take longer to read than a scheduler to come back
POLICY = make_policy(leases=Leases())


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> FakeKafka:
    """A deployment with a history, and inputs that nobody has read."""
    monkeypatch.setattr(migrate, "admin_client", lambda _settings: None)
    monkeypatch.setattr(migrate, "ensure", lambda *_: None)
    stated = InForce(7, PolicyChange(POLICY, "test", 0))
    monkeypatch.setattr(migrate, "read_policy", lambda _kafka: stated)
    names = [*OLD.names, *NEW.names]
    counts = {name: OLD.shards if name in OLD.names else NEW.shards for name in names}
    monkeypatch.setattr(migrate, "look", lambda _admin: Cluster(1, counts))
    monkeypatch.setattr(writing, "RECORDS", 40)
    made = FakeKafka(monkeypatch)
    deployment = Deployment.make(OLD.shards, POLICY)
    deployment.live(random.Random(7), 40)
    for shard, own in enumerate(deployment.shards):
        rows = [*own.dump(), PositionsRecord(1, {"requests": -1})]
        made.partitions[OLD.names.state, shard] = [Out(OLD.names.state, shard, *pair(shard, row)) for row in rows]
    value = encode_request(tenant="a", run_id="unread", workflow="w")
    made.partitions[OLD.names.requests, 0] = [Out(OLD.names.requests, 0, b"a", value) for _ in range(UNREAD)]
    return made


def migration(to: str = "b.", on: Callable[[str, int], None] = lambda _step, _done: None) -> Migration:
    before, after = (KafkaSettings(servers="nowhere:1", prefix=prefix) for prefix in ("a.", to))
    return Migration(before, after, NEW.shards, progress=lambda step, done, _of: on(step, done))


def assert_moved(kafka: FakeKafka, mover: Migration) -> None:
    """It comes to its end, everything is equal, and each unread input has one copy."""
    outcome = mover.run()
    assert (outcome.opened, [line for line in outcome.lines if not line.equal]) == (True, [])
    copies = [
        dict(each.headers)[MOVED_FROM]
        for shard in range(NEW.shards)
        for each in kafka.partitions[NEW.names.requests, shard]
    ]
    assert copies == [f"{OLD.names.requests}:0:{offset}".encode() for offset in range(UNREAD)]
    for shard in range(NEW.shards):
        assert_checkpoint(kafka, shard)


def assert_checkpoint(kafka: FakeKafka, shard: int) -> None:
    """A replay of the new deployment has something to begin with: the rows of each shard, before its first step."""
    parts = kafka.partitions[NEW.names.checkpoints, shard]
    held = [Rec(offset, 0, each.key, each.value) for offset, each in enumerate(parts)]
    found = latest_before(MemoryRecording("b.", NEW.shards, {(TOPIC, shard): held}), shard)
    assert found is not None
    assert (found.step, found.positions) == (0, None)
    state: dict[bytes | None, bytes | None] = {}
    for record in kafka.partitions[NEW.names.state, shard]:
        state[record.key] = record.value
    assert found.rows == {key: value for key, value in state.items() if value is not None}
    assert found.rows


def test_killed_before_any_transaction_it_can_be_run_again(kafka: FakeKafka) -> None:
    start = {place: list(records) for place, records in kafka.partitions.items()}
    assert_moved(kafka, migration())
    number = len(kafka.transactions)
    assert number > 3 + OLD.shards + NEW.shards, "each step has transactions of its own"
    for crash_at in range(number):
        kafka.partitions.clear()
        kafka.partitions.update({place: list(records) for place, records in start.items()})
        kafka.transactions.clear()
        kafka.crash_at = crash_at
        with pytest.raises(Crash):
            migration().run()
        kafka.crash_at = None
        assert_moved(kafka, migration())


def test_of_two_to_different_places_the_one_that_has_the_first_shard_has_all(kafka: FakeKafka) -> None:
    """Else each would have some, and neither could go on for the other's."""

    def first(step: str, done: int) -> None:
        if (step, done) == (MOVE, 0):  # the second has looked, and is about to begin
            with pytest.raises(Crash):
                migration("b.", crash).run()

    def crash(step: str, done: int) -> None:
        if (step, done) == (MOVE, 1):
            raise Crash

    with pytest.raises(ConfigError, match="has moved, or begun to, to 3 shard"):
        migration("c.", first).run()
    assert_moved(kafka, migration("b."))


def test_who_runs_it_last_wins(kafka: FakeKafka) -> None:
    later: list[Migration] = []

    def overtaken(step: str, done: int) -> None:
        if step == FILL and done and not later:
            later.append(migration())
            assert_moved(kafka, later[0])

    with pytest.raises(OwnershipLost):
        migration(on=overtaken).run()
    assert later


def test_a_scheduler_that_comes_back_while_a_large_shard_is_read_does_not_get_it_for_ever(kafka: FakeKafka) -> None:
    """It takes its shard back within a second, for which a shard may be too long to be read."""
    came_back = []

    def scheduler(topic: str, partition: int, number: int) -> None:
        if topic == OLD.names.state and number > LONG:
            came_back.append(partition)
            FakeWriter(kafka, OLD.transactional_id(partition)).fence()

    assert all(len(kafka.partitions[OLD.names.state, shard]) > LONG for shard in range(OLD.shards))
    kafka.on_read = scheduler
    assert_moved(kafka, migration())
    assert came_back
