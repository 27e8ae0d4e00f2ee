"""The local Kafka is a real one, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from streams import clock
from streams.errors import ConfigError, StartFailed
from streams.local import LocalKafka, ports
from streams.local.node import Node
from tests.integration.faults.harms import alive


def create(bootstrap: str, topic: str, *, replication: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 2, replication)]).values():
        future.result(30)


def produce(bootstrap: str, topic: str, count: int) -> None:
    """Produce `count` records, all acknowledged by all replicas, or fail."""
    failed: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for n in range(count):
        producer.produce(topic, str(n).encode(), on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(60) == 0
    assert not failed


def consume(bootstrap: str, topic: str, count: int) -> list[int]:
    """Read until `count` records have come, or 60 s have passed."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{topic}.g", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    got: list[int] = []

    def enough() -> bool:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None
            got.append(int(message.value() or b""))
        return len(got) >= count

    try:
        clock.wait_until(enough, 60, 0, what=f"{count} records of {topic}")
    finally:
        consumer.close()
    return sorted(got)


def test_records_come_back(kafka: LocalKafka, prefix: str) -> None:
    create(kafka.bootstrap, f"{prefix}t")
    produce(kafka.bootstrap, f"{prefix}t", 100)
    assert consume(kafka.bootstrap, f"{prefix}t", 100) == list(range(100))


def test_a_transaction_commits(kafka: LocalKafka, prefix: str) -> None:
    create(kafka.bootstrap, f"{prefix}t")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{prefix}x"})
    producer.init_transactions(30)
    for commits in (False, True):
        producer.begin_transaction()
        producer.produce(f"{prefix}t", b"1" if commits else b"0")
        producer.flush(30)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert consume(kafka.bootstrap, f"{prefix}t", 1) == [1]


def test_a_share_group_reads(kafka: LocalKafka, prefix: str) -> None:
    create(kafka.bootstrap, f"{prefix}t")
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    resource = ConfigResource(ConfigResource.Type.GROUP, f"{prefix}g", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    produce(kafka.bootstrap, f"{prefix}t", 10)
    consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"{prefix}g"})
    consumer.subscribe([f"{prefix}t"])
    got: list[int] = []

    def enough() -> bool:
        got.extend(int(message.value() or b"") for message in consumer.poll(0.5))
        return len(got) >= 10

    try:
        clock.wait_until(enough, 60, 0, what="ten records of the share group")
    finally:
        consumer.close()
    assert sorted(got) == list(range(10))


def test_a_topic_that_nobody_created_stays_absent(kafka: LocalKafka, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert f"{prefix}typo" not in admin.list_topics(f"{prefix}typo", timeout=10).topics or (
        admin.list_topics(f"{prefix}typo", timeout=10).topics[f"{prefix}typo"].error is not None
    )


def test_a_taken_port_is_named(kafka: LocalKafka) -> None:
    taken = int(kafka.bootstrap.rpartition(":")[2])
    with pytest.raises(StartFailed, match=f"port {taken} is taken"):
        LocalKafka(port=taken).open()


def test_two_owners_get_different_ports_also_if_one_is_lost_after_the_check(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = int(kafka.bootstrap.rpartition(":")[2])
    real, answers = ports.free_ports, [[taken]]
    monkeypatch.setattr(ports, "free_ports", lambda count: answers.pop() + real(count - 1) if answers else real(count))
    with LocalKafka() as other:
        assert not answers, "the taken port was never tried"
        assert other.bootstrap != kafka.bootstrap
        assert set(other.pids.values()).isdisjoint(kafka.pids.values())
        pid, log = other.pids[1], other.log_path()
        assert log.exists()
    assert not alive(pid)
    assert not log.parent.parent.exists()


def test_a_start_that_fails_shows_the_end_of_the_log_and_keeps_it() -> None:
    with pytest.raises(StartFailed, match=r"log\.retention\.ms") as caught:
        LocalKafka(settings={"log.retention.ms": "soon"}).open()
    log = caught.value.log
    assert log is not None
    assert "soon" in log.read_text()
    log.unlink()
    log.with_name("server.properties").unlink()
    log.parent.rmdir()
    log.parent.parent.rmdir()


def test_chosen_data_is_found_again_whatever_its_name(tmp_path: Path) -> None:
    name = "da ta, (é) %20:$HOME\\n*"
    tmp_path /= name
    with LocalKafka(data_dir=tmp_path) as first:
        create(first.bootstrap, "kept")
        produce(first.bootstrap, "kept", 10)
    with LocalKafka(data_dir=tmp_path) as second:
        assert consume(second.bootstrap, "kept", 10) == list(range(10))
        second.kill(1)
        second.start(1)
        produce(second.bootstrap, "kept", 1)
    assert {path.name for path in tmp_path.parent.iterdir()} == {name}


def test_data_of_another_number_of_nodes_is_refused(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"node-{number}").mkdir()
    with pytest.raises(ConfigError, match=r"holds the data of 2 node\(s\)"):
        LocalKafka(nodes=3, data_dir=tmp_path).open()


@pytest.mark.slow
def test_a_format_that_was_broken_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_the_first(node: Node, cluster_id: str) -> None:
        if node.spec.node_id == 2:
            raise StartFailed("as if killed here")
        real(node, cluster_id)

    real = Node.format
    with monkeypatch.context() as patch:
        patch.setattr(Node, "format", only_the_first)
        with pytest.raises(StartFailed, match="as if killed"):
            LocalKafka(nodes=2, data_dir=tmp_path).open()
    assert (tmp_path / "node-1" / "data" / "meta.properties").exists()
    with LocalKafka(nodes=2, data_dir=tmp_path) as cluster:
        create(cluster.bootstrap, "t", replication=2)


@pytest.mark.slow
def test_three_nodes_lose_one_and_nothing_else() -> None:
    with LocalKafka(nodes=3) as cluster:
        create(cluster.bootstrap, "t", replication=3)
        produce(cluster.bootstrap, "t", 100)
        victim = cluster.pids[2]
        cluster.kill(2)
        assert not alive(victim)
        assert set(cluster.pids) == {1, 3}
        produce(cluster.bootstrap, "t", 100)
        assert len(consume(cluster.bootstrap, "t", 200)) == 200
        cluster.start(2)
        assert set(cluster.pids) == {1, 2, 3}


OWNER = """
import sys
from pathlib import Path
from streams.local import LocalKafka
with LocalKafka(data_dir=Path(sys.argv[1]) if sys.argv[1:] else None) as kafka:
    print(kafka.pids[1], kafka.log_path().parent.parent, flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", int, Path]]:
    """Another process that owns a Kafka: its handle, the broker's process id, its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    with process:
        assert process.stdout is not None
        pid, _, folder = process.stdout.readline().strip().partition(" ")
        try:
            yield process, int(pid), Path(folder)
        finally:
            process.kill()


def test_the_broker_dies_with_a_killed_owner_and_leaves_nothing() -> None:
    with owner() as (process, broker, folder):
        assert alive(broker)
        assert folder.exists()
        process.send_signal(signal.SIGKILL)
        clock.wait_until(lambda: not alive(broker), 5, what="the end of the broker")
        clock.wait_until(lambda: not folder.exists(), 5, what="the end of its folder")


def test_data_of_a_killed_owner_is_closed_cleanly_before_the_next_may_have_it(tmp_path: Path) -> None:
    with owner(str(tmp_path)) as (process, broker, _):
        started = psutil.Process(broker).create_time()
        process.send_signal(signal.SIGKILL)
        with LocalKafka(data_dir=tmp_path) as heir:
            assert not alive(broker)
            assert psutil.Process(heir.pids[1]).create_time() > started
            previous = heir.log_path().with_suffix(".previous.log").read_text()
    assert "shut down completed" in previous.replace("shutdown", "shut down").lower()


def test_the_broker_dies_with_its_supervisor() -> None:
    if sys.platform != "linux":
        pytest.xfail("only Linux tells a child of its parent's death")
    with owner() as (process, broker, folder):
        supervisor = psutil.Process(broker).ppid()
        os.kill(supervisor, signal.SIGKILL)
        clock.wait_until(lambda: not alive(broker), 5, what="the end of the broker")
        assert process.stdin is not None
        process.stdin.close()  # the owner ends in its own way, and finds a node that is gone
        assert process.wait(20) == 0
        assert not folder.exists()
