"""Kafka, or the process, stands still for longer than a transaction lasts: the same process goes on, and says so."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from streams import clock
from streams.local import LocalKafka
from streams.wire import encode_request, partition_for
from tests.integration.deployment import Deployment, deploy
from tests.integration.held_takeover import HELD
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import make_producer, traffic

NIGHTLY = os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly"


def health(scheduler: SchedulerProcess) -> dict[str, Any]:
    status, body = scheduler.ask("/healthz")
    assert status in {200, None}, body
    found: dict[str, Any] = json.loads(body or "{}")
    return found


def test_a_process_that_was_frozen_in_a_transaction_takes_its_shards_again(
    mortal: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    """Its session outlasts the freeze, so the group leaves it its shards; but Kafka ends its transaction."""
    here = deploy(mortal.bootstrap, prefix, tmp_path, shards=2)
    arm, trace = tmp_path / "arm", tmp_path / "faults.txt"
    faults = f"before_commit=1;signal=STOP;arm={arm};trace={trace}"
    with (
        here.scheduler(transaction_timeout_s=1, session_timeout_s=60, faults=faults) as scheduler,
        traffic(here.servers, prefix, per_s=50) as (feeder, _),
    ):
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: feeder.filed > 100, 30, what="load")
        arm.write_text("before_commit", encoding="ascii")
        # By then half a transaction is with the broker.
        clock.wait_until(
            lambda: trace.exists() and trace.read_text().endswith(" before_commit\n"), 30, what="the fault"
        )
        clock.wait_until(lambda: not hangs(here), 30, what="Kafka to end the transaction")
        scheduler.send(signal.SIGCONT)
        filed = feeder.filed
        clock.wait_until(lambda: feeder.filed > filed + 50, 30, what="load after it")
        scheduler.wait_until_ready({0, 1})
        feeder.finish()
        here.prove()
        assert scheduler.poll() is None
    said = scheduler.log.read_text()
    assert "streams.app.shard_lost" in said or "streams.app.step_aborted" in said


def hangs(here: Deployment) -> bool:
    """Whether a reader of committed records gets less far in the state than there is."""
    ends = []
    for level in ("read_committed", "read_uncommitted"):
        consumer = Consumer({"bootstrap.servers": here.servers, "group.id": "ends", "isolation.level": level})
        ends.append(
            [consumer.get_watermark_offsets(TopicPartition(here.names.state, n))[1] for n in range(here.shards)]
        )
        consumer.close()
    return ends[0] != ends[1]


def file_for_later(here: Deployment) -> None:
    """A run of each shard whose time comes in the outage: one that happens to be idle then has something to write."""
    producer = make_producer(here.servers)
    for tenant in (next(name for name in map(str, range(99)) if partition_for(name, 2) == shard) for shard in (0, 1)):
        later = encode_request(tenant=tenant, run_id="later", workflow="w", not_before_ms=clock.now_ms() + 6_000)
        producer.produce(here.names.requests, later, tenant.encode())
    assert producer.flush(30) == 0


@pytest.mark.slow
def test_an_outage_is_waited_out_and_told_once(mortal: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(mortal.bootstrap, prefix, tmp_path, shards=2)
    with (
        here.scheduler(transaction_timeout_s=1) as scheduler,
        traffic(here.servers, prefix, per_s=50) as (feeder, _),
    ):
        scheduler.wait_until_ready({0, 1})
        file_for_later(here)
        clock.wait_until(lambda: feeder.filed > 100, 30, what="load")
        mortal.kill(1)
        # A writer gives up ten seconds after the transaction's own timeout: by then both shards have ended.
        clock.wait_until(
            lambda: set(health(scheduler).get("unserved", ())) == {"0", "1"}, 90, what="both shards to give up"
        )
        told = health(scheduler)
        assert told["kafka"].startswith("has not answered for")
        assert all(why.startswith("waiting: ") for why in told["unserved"].values())
        assert scheduler.ask("/readyz")[0] == 503
        mortal.start(1)
        scheduler.wait_until_ready({0, 1})
        assert health(scheduler)["kafka"] == "answers"
        assert health(scheduler)["unserved"] == {}
        feeder.finish()
        here.prove(deadline_s=120)
        said = scheduler.log.read_text()
        assert said.count("streams.app.kafka_away") == said.count("streams.app.kafka_back") == 1
        assert [said.count(f"streams.app.shard_waiting shard={shard}") for shard in (0, 1)] == [1, 1]
        assert scheduler.poll() is None
        assert scheduler.stop() == 0


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("held_at", ["fence", "load"] if NIGHTLY else ["fence"])
def test_a_stop_during_a_takeover_is_obeyed_also_without_kafka(
    mortal: LocalKafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_at: str
) -> None:
    here = deploy(mortal.bootstrap, prefix, tmp_path, shards=2)
    let_go = tmp_path / "go"
    monkeypatch.setenv("HELD_AT", held_at)
    monkeypatch.setenv("HELD_UNTIL", str(let_go))
    producer = make_producer(here.servers)
    producer.produce(here.names.requests, encode_request(tenant="a", run_id="r", workflow="w"), b"a")
    assert producer.flush(30) == 0
    with here.scheduler("first", module="tests.integration.held_takeover") as first:
        clock.wait_until(lambda: first.log.read_text().count(HELD + held_at) == 2, 60, what="both shards to be held")
        mortal.kill(1)
        let_go.touch()
        assert first.stop() == 0
    mortal.start(1)
    with here.scheduler("second") as second:
        second.wait_until_ready({0, 1})
        clock.wait_until(lambda: len(here.gather().dispatches) == 1, 30, what="the run to be dispatched")
