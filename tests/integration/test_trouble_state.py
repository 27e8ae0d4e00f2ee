"""A shard whose state cannot be read is refused by name, and repaired without a restart; a clock that goes back."""

import json
from pathlib import Path
from typing import Any

from streams import clock
from streams.local import LocalKafka
from streams.wire import decode_dispatch, encode_request, partition_for
from tests.integration.clock_set_back import SET_BACK
from tests.integration.deployment import Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.topics import read_topic
from tests.integration.traffic import make_producer, traffic


def ready(scheduler: SchedulerProcess) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scheduler.ask("/readyz")[1] or "{}")
    return found


def shards_of_dispatches(here: Deployment) -> list[int]:
    return [decode_dispatch(seen.value).shard for seen in read_topic(here.servers, here.names.dispatch)]


def last_value(here: Deployment, key: bytes) -> bytes:
    """What stood in a row of the state before it was deleted."""
    values = [seen.value for seen in read_topic(here.servers, here.names.state) if seen.key == key and seen.value]
    return values[-1]


SHARD_ROW = b'[1,"shard"]'
BROKEN = b"[99,1]"  # of a version that nobody has written yet


def test_a_shard_that_cannot_be_read_is_refused_and_comes_back_when_it_is_repaired(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=3)
    producer = make_producer(here.servers)

    def write(key: bytes, value: bytes | None) -> None:
        producer.produce(here.names.state, value, key, 1)
        assert producer.flush(30) == 0

    write(SHARD_ROW, BROKEN)
    # More than the inbox holds, on the shard that takes nothing: they must hold up nobody.
    tenant = next(name for name in map(str, range(99)) if partition_for(name, 3) == 1)
    for number in range(500):
        value = encode_request(tenant=tenant, run_id=f"early-{number}", workflow="w")
        producer.produce(here.names.requests, value, tenant.encode())
    assert producer.flush(30) == 0
    with (
        here.scheduler(refused_retry_s=0.5, inbox_records=100, max_step_inputs=100) as scheduler,
        traffic(here.servers, prefix, per_s=100) as (feeder, _),
    ):
        clock.wait_until(lambda: ready(scheduler).get("shards") == [0, 2], 60, what="the other shards")
        served = len(shards_of_dispatches(here))
        clock.wait_until(lambda: len(shards_of_dispatches(here)) > served + 50, 30, what="the others to be served")
        assert set(shards_of_dispatches(here)) == {0, 2}

        assert scheduler.ask("/readyz")[0] == 503
        assert ready(scheduler)["status"] == "incomplete"
        assert "refused: the row ('shard',) was written by a newer fairstream" in ready(scheduler)["unserved"]["1"]
        assert scheduler.ask("/healthz")[0] == 200
        assert scheduler.log.read_text().count("streams.app.shard_refused shard=1") == 1

        write(SHARD_ROW, None)
        scheduler.wait_until_ready({0, 1, 2})
        feeder.finish()
        here.prove()

        # A row that is lost, of which nothing else would tell: a tenant would be charged by what others cost.
        key = next(
            seen.key
            for seen in read_topic(here.servers, here.names.state)
            if seen.partition == 1 and seen.key is not None and b'"history"' in seen.key and seen.value
        )
        assert scheduler.stop() == 0
        write(key, None)
        scheduler.start()
        clock.wait_until(lambda: ready(scheduler).get("shards") == [0, 2], 60, what="the other shards")
        clock.wait_until(lambda: "1" in ready(scheduler)["unserved"], 30, what="the refusal")
        assert "rows are not those that were written" in ready(scheduler)["unserved"]["1"]
        write(key, last_value(here, key))
        scheduler.wait_until_ready({0, 1, 2})
        assert scheduler.poll() is None


def test_a_clock_that_goes_back_holds_up_nothing(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    with (
        here.scheduler(module="tests.integration.clock_set_back") as scheduler,
        traffic(here.servers, prefix, per_s=100) as (feeder, _),
    ):
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: SET_BACK in scheduler.log.read_text(), 30, what="the clock to be set back")
        filed = feeder.filed
        clock.wait_until(lambda: feeder.filed > filed + 200, 30, what="load after it")
        feeder.finish()
        evidence = here.prove()
    for entries in evidence.journal.values():
        times = [entry.now_ms for entry in entries]
        assert times == sorted(times)
