"""A worker outlives its broker's death, whatever it was doing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from streams.client import Publisher, Run
from streams.local import LocalKafka
from streams.wire import decode_request
from tests.integration.client_rig import Rig, make_worker, serving
from tests.integration.topics import read_topic


@pytest.mark.slow
@pytest.mark.parametrize("intake", ["share", "classic"])
def test_a_worker_goes_on_after_its_broker_was_killed(mortal: LocalKafka, prefix: str, intake: str) -> None:
    before, after = [f"before-{n}" for n in range(20)], [f"after-{n}" for n in range(20)]
    rig = Rig(mortal.bootstrap, prefix)
    worker = make_worker(rig.kafka, intake, concurrency=4)
    may_end = threading.Event()

    @worker.run("long")
    async def long(run: Run) -> int:
        while not may_end.is_set():
            await asyncio.sleep(0.05)
            run.spent(1)
        return 9

    @worker.run("short")
    def short(_: Run) -> int:
        return 1

    with serving(worker):
        rig.dispatcher.dispatch("long", workflow="long", lease_ms=1_500)
        rig.dispatcher.dispatch(*before, workflow="short")
        rig.wait_for_ends(*before)
        mortal.kill(1)
        mortal.start(1)
        rig.dispatcher.dispatch(*after, workflow="short")
        rig.wait_for_ends(*after)
        beats = sum(each.status == "heartbeat" for each in rig.reports())
        rig.wait_for_reports(
            lambda found: sum(each.status == "heartbeat" for each in found) > beats, "a heartbeat after the restart"
        )
        may_end.set()
        found = rig.wait_for_ends("long")
    ends = [each for each in found if each.status == "succeeded"]
    assert {each.run_id for each in ends} == {"long", *before, *after}
    assert {each.tokens for each in ends if each.run_id == "long"} == {9}


@pytest.mark.slow
def test_what_is_filed_while_the_broker_is_away_arrives_once_and_in_order(mortal: LocalKafka, prefix: str) -> None:
    rig = Rig(mortal.bootstrap, prefix)
    with Publisher(rig.kafka) as publisher:
        publisher.submit("acme", "r0", "w").result()
        mortal.kill(1)
        for number in range(1, 500):
            publisher.submit("acme", f"r{number}", "w")
        mortal.start(1)
    records = read_topic(mortal.bootstrap, rig.kafka.topics.requests)
    requests = [decode_request(record.key, record.value, record.offset, record.timestamp_ms) for record in records]
    assert [request.run_id for request in requests] == [f"r{number}" for number in range(500)]
