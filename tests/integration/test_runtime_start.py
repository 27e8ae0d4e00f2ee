"""How a scheduler process begins and ends: what it waits for, what it refuses, what it exits with."""

import signal
import socket
from pathlib import Path

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.app.transaction import KafkaWriter
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.local.ports import LOOPBACK, free_ports
from streams.wire import encode_request, topic_names
from tests.integration.deployment import deploy
from tests.integration.processes import STOP_S, SchedulerProcess
from tests.integration.traffic import make_producer, traffic

CONFIG_ERROR = 2


def ended(scheduler: SchedulerProcess) -> int:
    clock.wait_until(lambda: scheduler.poll() is not None, 30, what="its end")
    code = scheduler.poll()
    assert code is not None
    return code


def test_a_broker_that_is_down_is_waited_for_with_one_line(prefix: str, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    scheduler = SchedulerProcess(
        tmp_path, "early", kafka=f"{LOOPBACK}:{port}", prefix=prefix, shards=1, create_topics="true"
    )
    with scheduler:
        clock.wait_until(lambda: "streams.app.waiting" in scheduler.log.read_text(), 30, what="the line that says so")
        assert scheduler.ask("/healthz") == (200, '{"status": "waiting for Kafka"}')
        assert scheduler.ask("/readyz")[0] == 503
        with LocalKafka(port=port) as late:
            assert late.bootstrap.endswith(f":{port}")
            scheduler.wait_until_ready({0})
            assert scheduler.log.read_text().count("streams.app.waiting") == 1
            assert scheduler.stop() == 0


def test_a_stop_while_waiting_for_the_broker_is_obeyed(prefix: str, tmp_path: Path) -> None:
    kafka = f"{LOOPBACK}:{free_ports(1)[0]}"
    with SchedulerProcess(tmp_path, "early", kafka=kafka, prefix=prefix, shards=1) as scheduler:
        clock.wait_until(lambda: "streams.app.waiting" in scheduler.log.read_text(), 30, what="the line that says so")
        assert scheduler.stop() == 0


def test_sigterm_under_load_ends_within_five_seconds(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=4)
    with here.scheduler() as scheduler, traffic(here.servers, prefix, per_s=500) as (feeder, _):
        scheduler.wait_until_ready({0, 1, 2, 3})
        clock.wait_until(lambda: feeder.filed > 500, 30, what="load")
        begun = clock.monotonic()
        assert scheduler.stop() == 0
        assert clock.monotonic() - begun < STOP_S
    assert "stop_forced" not in scheduler.log.read_text()


def test_sigterm_with_a_dead_broker_ends_within_five_seconds(mortal: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(mortal.bootstrap, prefix, tmp_path, shards=2)
    with here.scheduler() as scheduler, traffic(here.servers, prefix, per_s=200) as (feeder, _):
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: feeder.filed > 200, 30, what="load")
        mortal.kill(1)
        assert scheduler.stop() == 0
        mortal.start(1)


def test_missing_topics_are_refused_with_the_way_out(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "lost", kafka=kafka.bootstrap, prefix=prefix, shards=1) as scheduler:
        assert ended(scheduler) == CONFIG_ERROR
    assert "fairstream topics" in scheduler.log.read_text()


def test_missing_topics_are_created_when_told_to(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    scheduler = SchedulerProcess(
        tmp_path, "first", kafka=kafka.bootstrap, prefix=prefix, shards=3, create_topics="yes", dispatch_partitions=5
    )
    with scheduler:
        scheduler.wait_until_ready({0, 1, 2})
    found = look(admin_client(KafkaSettings(servers=kafka.bootstrap, prefix=prefix))).partitions
    names = topic_names(prefix)
    assert (found[names.requests], found[names.state], found[names.dispatch], found[names.policy]) == (3, 3, 5, 1)


def test_another_number_of_shards_than_the_topics_have_is_refused(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    with SchedulerProcess(tmp_path, "wrong", kafka=here.servers, prefix=prefix, shards=3) as scheduler:
        assert ended(scheduler) == CONFIG_ERROR
    assert "2 partitions, 3 wanted" in scheduler.log.read_text()


def test_a_broker_that_restarts_is_ridden_out(mortal: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(mortal.bootstrap, prefix, tmp_path, shards=2)
    with here.scheduler() as scheduler, traffic(here.servers, prefix, per_s=100) as (feeder, _):
        scheduler.wait_until_ready({0, 1})
        for _ in range(2):
            filed = feeder.filed
            clock.wait_until(lambda: feeder.filed > filed + 100, 30, what="load")  # noqa: B023
            mortal.kill(1)
            mortal.start(1)
        feeder.finish()
        here.prove(deadline_s=120)
        assert scheduler.poll() is None
        scheduler.send(signal.SIGTERM)
        assert ended(scheduler) == 0


def test_a_port_that_is_taken_is_named(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    with socket.create_server((LOOPBACK, 0)) as taken, here.scheduler(web_port=taken.getsockname()[1]) as scheduler:
        assert ended(scheduler) == CONFIG_ERROR
    assert "web_port: cannot listen" in scheduler.log.read_text()


def test_two_deployments_that_would_share_shards_find_out(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    """Another group with the same transactional ids takes a shard away, again and again: one of the two must end."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    with here.scheduler("first", group=f"{prefix}group", lost_shard_grace_s=1) as first:
        first.wait_until_ready({0})
        settings = KafkaSettings(servers=here.servers, prefix=prefix)
        transactional_id = f"{prefix}group-0"
        producer = make_producer(here.servers)

        def robbed() -> bool:
            KafkaWriter(settings, here.names, shard=0, transactional_id=transactional_id, timeout_ms=10_000).fence()
            producer.produce(here.names.requests, encode_request(tenant="a", run_id="r", workflow="w"), b"a")
            assert producer.flush(30) == 0
            return first.poll() is not None

        clock.wait_until(robbed, 60, what="it to give up")
        assert first.poll() == 1
    assert "was taken over by a scheduler outside this group" in first.log.read_text()
    assert first.log.read_text().count("streams.app.shard_lost") == 1  # said once, however often it was tried again
