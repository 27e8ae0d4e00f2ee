"""Topics that are made anew or cut short under a live scheduler: a clear refusal or a told loss, never silence."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.admin.topics import Layout, ensure
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import encode_request
from tests.integration.deployment import Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import make_producer, traffic

WAIT_S = 60


def make_anew(here: Deployment, topic: str) -> None:
    """Delete a topic and create it again, empty."""
    settings = KafkaSettings(servers=here.servers, prefix=here.prefix)
    admin = admin_client(settings)
    admin.delete_topics([topic])[topic].result()
    clock.wait_until(lambda: topic not in look(admin).partitions, WAIT_S, what=f"{topic} to be gone")
    ensure(admin, Layout(shards=here.shards, dispatch_partitions=here.shards, prefix=here.prefix))


def unserved(scheduler: SchedulerProcess) -> dict[str, str]:
    assert scheduler.poll() is None, "it ended"
    found: dict[str, Any] = json.loads(scheduler.ask("/readyz")[1] or "{}")
    given: dict[str, str] = found.get("unserved", {})
    return given


@contextmanager
def busy(here: Deployment) -> Iterator[SchedulerProcess]:
    """A scheduler with fifty runs behind it, and more coming: what is made anew then has been written to."""
    with (
        here.scheduler(refused_retry_s=0.5) as scheduler,
        traffic(here.servers, here.prefix, per_s=50),
    ):
        scheduler.wait_until_ready(set(range(here.shards)))
        clock.wait_until(lambda: len(here.gather().dispatches) > 50, WAIT_S, what="load")
        yield scheduler


def test_requests_made_anew_are_refused_until_the_state_is_too(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    with busy(here) as scheduler:
        make_anew(here, here.names.requests)
        refused = f"refused: {here.names.requests} was deleted and made anew"
        clock.wait_until(
            lambda: (
                [why for why in unserved(scheduler).values() if why.startswith(refused)]
                and len(unserved(scheduler)) == 2
            ),
            WAIT_S,
            what="both shards to be refused",
        )
        served = len(here.gather().dispatches)
        # However full the new topic gets, and whoever looks: its records are not taken for the old ones.
        scheduler.kill()
        scheduler.start()
        clock.wait_until(lambda: len(unserved(scheduler)) == 2, WAIT_S, what="both shards to be refused again")
        assert len(here.gather().dispatches) == served
        make_anew(here, here.names.state)
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: len(here.gather().dispatches) > served, WAIT_S, what="the new requests to be served")


def test_state_made_anew_under_its_owner_is_not_gone_on_with(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    with busy(here) as scheduler:
        make_anew(here, here.names.state)
        clock.wait_until(
            lambda: f"{here.names.state} was deleted and made anew" in unserved(scheduler).get("0", ""),
            WAIT_S,
            what="the shard to be refused",
        )
        assert scheduler.ask("/readyz")[0] == 503


def test_inputs_that_expire_before_they_are_read_are_skipped_aloud(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    """While it runs, and while it does not: the rest is served, and how much is missing stands in the log."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    producer = make_producer(here.servers)
    admin = admin_client(KafkaSettings(servers=here.servers, prefix=prefix))

    def expire(to: int) -> None:
        position = TopicPartition(here.names.requests, 0, to)
        (future,) = admin.delete_records([position]).values()
        future.result()

    def file(first: int, end: int) -> None:
        for number in range(first, end):
            producer.produce(here.names.requests, encode_request(tenant="a", run_id=f"{number}", workflow="w"), b"a")
        assert producer.flush(30) == 0

    def dispatched() -> set[int]:
        return {int(each.run_id) for each in here.gather().dispatches}

    with here.scheduler(session_timeout_s=60) as scheduler:
        scheduler.wait_until_ready({0})
        file(0, 10)
        clock.wait_until(lambda: len(dispatched()) == 10, WAIT_S, what="the first ten")
        scheduler.send(signal.SIGSTOP)
        clock.pause(0.5)  # a fetch that waits at the broker ends after 20 ms: it is not to bring what is filed now
        file(10, 30)
        expire(20)
        scheduler.send(signal.SIGCONT)
        clock.wait_until(lambda: len(dispatched()) == 20, WAIT_S, what="those that are left")
        assert scheduler.stop() == 0
        file(30, 50)
        expire(40)
        scheduler.start()
        clock.wait_until(lambda: len(dispatched()) == 30, WAIT_S, what="those that are left of the next")
        assert scheduler.poll() is None
    assert dispatched() == {*range(10), *range(20, 30), *range(40, 50)}
    told = [line for line in scheduler.log.read_text().splitlines() if "streams.app.input_expired" in line]
    assert ["up to 10 records" in line for line in told] == [True, True]
