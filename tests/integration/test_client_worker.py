"""Workers on a real Kafka, dispatched to by hand; the scheduler has its own tests."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from streams import clock
from streams.client import GiveUp, Run
from streams.core.inputs import Completion
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import partition_for
from tests.integration.client_rig import SHARD, WAIT_S, Rig, make_worker, serving
from tests.integration.topics import read_topic

both = pytest.mark.parametrize("intake", ["share", "classic"])


def of(reports: list[Completion], run_id: str) -> list[tuple[str, int | None]]:
    """What was reported on a run, in order: status and tokens."""
    return [(each.status, each.tokens) for each in reports if each.run_id == run_id]


def busy_until(go_on: threading.Event) -> None:
    """Compute without ever waiting, as a function that hogs its thread does."""
    number = 0
    while not go_on.is_set():
        number = (number * 3 + 1) % 1_000_003


@both
def test_a_run_is_reported_from_start_to_end_where_its_shard_looks(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    worker = make_worker(rig.kafka, intake, name="w1")

    @worker.run("summarise")
    async def summarise(run: Run) -> int:
        tokens: int = run.payload["tokens"]
        return tokens * 2

    @worker.run()
    def others(run: Run) -> None:
        run.spent(3)
        raise GiveUp(f"no {run.workflow} here")

    rig.dispatcher.dispatch("r1", tenant="acme")
    rig.dispatcher.dispatch("r2", tenant="zeta", workflow="translate", attempt=4)
    with serving(worker):
        rig.wait_for_ends("r1")
        found = rig.wait_for_ends("r2", status="failed")
    assert of(found, "r1") == [("started", None), ("succeeded", 10)]
    [started, failed] = [each for each in found if each.run_id == "r2"]
    assert (started.status, started.attempt, started.worker) == ("started", 4, "w1")
    assert (failed.tokens, failed.retryable, failed.error) == (3, False, "GiveUp: no translate here")
    records = read_topic(kafka.bootstrap, rig.kafka.topics.completions)
    assert {record.partition for record in records} == {partition_for(tenant, 4) for tenant in ("acme", "zeta")}
    assert all(f'"shard":{SHARD}'.encode() in (record.value or b"") for record in records)


@both
def test_nothing_of_an_aborted_step_is_started(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    worker = make_worker(rig.kafka, intake)
    worker.run()(lambda _: 1)
    for step in range(5):
        rig.dispatcher.dispatch(f"aborted-{step}", commit=False)
        rig.dispatcher.dispatch(f"good-{step}")
    good = {f"good-{step}" for step in range(5)}
    with serving(worker):
        found = rig.wait_for_ends(*good)
    assert {each.run_id for each in found} == good


@both
def test_heartbeats_go_on_while_a_function_is_busy(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    worker = make_worker(rig.kafka, intake, concurrency=2)
    go_on = threading.Event()

    @worker.run("plain")
    def plain(run: Run) -> None:
        run.spent(7)
        busy_until(go_on)

    @worker.run("coroutine")
    async def coroutine(run: Run) -> None:
        run.spent(8)
        busy_until(go_on)  # on the event loop's own thread

    rig.dispatcher.dispatch("r1", workflow="plain", lease_ms=900)
    rig.dispatcher.dispatch("r2", workflow="coroutine", lease_ms=900)

    def beaten(found: list[Completion]) -> bool:
        return all(of(found, run_id).count(("heartbeat", tokens)) >= 3 for run_id, tokens in (("r1", 7), ("r2", 8)))

    with serving(worker):
        rig.wait_for_reports(beaten, "three heartbeats of each")
        go_on.set()
        rig.wait_for_ends("r1", "r2")


@both
def test_a_revoked_attempt_is_stopped_wherever_it_runs(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    workers = [make_worker(rig.kafka, intake, name=f"w{n}", concurrency=1) for n in range(2)]
    for worker in workers:

        @worker.run()
        async def for_ever(run: Run) -> None:
            run.spent(5)
            await asyncio.Event().wait()

    with serving(workers[0]), serving(workers[1]):
        for number in range(8):  # into all partitions, so that both workers have work in a classic group too
            rig.dispatcher.dispatch(f"r{number}")
        begun = rig.wait_for_reports(
            lambda found: {each.worker for each in found} == {"w0", "w1"}, "a start of each worker"
        )
        first = {each.worker: each.run_id for each in reversed(begun)}
        for run_id in first.values():
            rig.dispatcher.revoke(run_id)
        found = rig.wait_for_ends(*first.values(), status="failed")
        stopped = [each for each in found if each.status == "failed"]
        assert {(each.run_id, each.worker) for each in stopped} == {(run_id, w) for w, run_id in first.items()}
        assert {(each.tokens, each.retryable, each.error) for each in stopped} == {(5, False, "revoked")}
        for worker in workers:
            worker.stop()
            worker.stop()


def test_a_deadline_ends_a_run(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    worker = make_worker(rig.kafka, "classic")

    @worker.run()
    async def for_ever(run: Run) -> None:
        run.spent(2)
        await asyncio.Event().wait()

    with serving(worker):
        # Once the worker has begun, so that the time it takes to join is not counted.
        rig.dispatcher.dispatch("first", deadline_ms=clock.now_ms() - 1)
        rig.wait_for_ends("first", status="failed")
        rig.dispatcher.dispatch("r1", deadline_ms=clock.now_ms() + 1_500)
        found = rig.wait_for_ends("r1", status="failed")
    assert of(found, "first") == [("failed", 0)]
    assert of(found, "r1") == [("started", None), ("failed", 2)]
    assert [each.error for each in found if each.status == "failed"] == ["deadline"] * 2


@both
def test_a_drain_lets_runs_end_and_leaves_the_rest_to_others(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix, dispatch_partitions=1)
    first = make_worker(rig.kafka, intake, concurrency=2, name="first")
    go_on = threading.Event()
    first.run()(lambda _: int(go_on.wait(WAIT_S)))
    everything = {f"r{number}" for number in range(6)}
    rig.dispatcher.dispatch(*everything)
    with serving(first):
        rig.wait_for_reports(lambda found: len(found) >= 2, "two starts")
        first.stop()
        go_on.set()
    second = make_worker(rig.kafka, intake, concurrency=2, name="second")
    second.run()(lambda _: 1)
    with serving(second):
        found = rig.wait_for_ends(*everything)
    ends = [each for each in found if each.status == "succeeded"]
    assert sorted(each.run_id for each in ends) == sorted(everything), "a run was done twice"
    # Two, and up to two more if the turn that was under way found room.
    assert sum(each.worker == "first" for each in ends) in {2, 3, 4}


def test_a_drain_that_takes_too_long_hands_runs_back(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    worker = make_worker(rig.kafka, "classic", drain_s=0.2)

    @worker.run()
    async def for_ever(run: Run) -> None:
        run.spent(2)
        await asyncio.Event().wait()

    rig.dispatcher.dispatch("r1")
    with serving(worker):
        rig.wait_for_reports(lambda found: len(found) > 0, "a start")
    assert of(rig.reports(), "r1") == [("started", None), ("returned", None)]


SERVE = """
import sys
from streams.client import KafkaSettings, Run, Worker, WorkerSettings

worker = Worker(KafkaSettings(servers=sys.argv[1], prefix=sys.argv[2]), WorkerSettings(drain_s=0.5, name="process"))

@worker.run()
def work(run: Run) -> None:
    while True:
        pass

worker.serve()
"""


def test_sigterm_ends_a_worker_whose_function_never_looks(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    rig.dispatcher.dispatch("r1", lease_ms=1_000)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, kafka.bootstrap, prefix],
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    with process:
        try:
            rig.wait_for_reports(lambda found: ("heartbeat", None) in of(found, "r1"), "a heartbeat of a busy process")
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
    assert of(rig.reports(), "r1")[-1] == ("returned", None)


@both
def test_two_workers_do_each_run_once(kafka: LocalKafka, prefix: str, intake: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    workers = [make_worker(rig.kafka, intake, name=f"w{n}", concurrency=4) for n in range(2)]
    for worker in workers:

        @worker.run()
        async def nap(_: Run) -> int:
            await asyncio.sleep(0.02)
            return 1

    everything = [f"r{number}" for number in range(200)]
    with serving(workers[0]), serving(workers[1]):
        # Both must be members before there is much to do, or one of them may do all of it.
        helped: set[str | None] = set()
        for step in range(60):
            warm = [f"warm-{step}-{number}" for number in range(8)]
            rig.dispatcher.dispatch(*warm)
            helped = {each.worker for each in rig.wait_for_ends(*warm)}
            if helped == {"w0", "w1"}:
                break
        assert helped == {"w0", "w1"}
        for begin in range(0, 200, 20):
            rig.dispatcher.dispatch(*everything[begin : begin + 20])
        found = rig.wait_for_ends(*everything)
    ends = [each for each in found if each.status == "succeeded" and each.run_id in set(everything)]
    assert sorted(each.run_id for each in ends) == sorted(everything)
    assert {each.worker for each in ends} == {"w0", "w1"}


def test_one_large_step_fills_all_workers_of_a_share_group(kafka: LocalKafka, prefix: str) -> None:
    """The first to ask is handed all of it; what it has no room for must reach the others soon."""
    rig = Rig(kafka.bootstrap, prefix, dispatch_partitions=1)
    may_end = threading.Event()
    workers = [make_worker(rig.kafka, name=f"w{n}", concurrency=2) for n in range(6)]
    for worker in workers:
        worker.run()(lambda _: int(may_end.wait(WAIT_S)))
    everything = {f"r{number}" for number in range(12)}
    given_back = 0

    def all_busy(found: list[Completion]) -> bool:
        nonlocal given_back
        returned = [each.run_id for each in found if each.status == "returned"]
        if returned[given_back:]:
            rig.dispatcher.dispatch(*returned[given_back:])  # as the scheduler does: the same attempt, anew
        given_back = len(returned)
        return {each.run_id for each in found if each.status == "started"} == everything

    with ExitStack() as stack:
        for worker in workers:
            stack.enter_context(serving(worker))
        rig.dispatcher.dispatch(*everything)
        begun = rig.wait_for_reports(all_busy, "twelve runs in progress on six workers with two places each")
        may_end.set()
        found = rig.wait_for_ends(*everything)
    assert {each.worker for each in begun if each.status == "started"} == {f"w{n}" for n in range(6)}
    assert sorted(each.run_id for each in found if each.status == "succeeded") == sorted(everything)


def test_a_worker_without_functions_is_a_mistake(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    with pytest.raises(ConfigError, match="register a function"):
        make_worker(rig.kafka).serve()


def test_a_worker_without_topics_is_told_what_to_do(kafka: LocalKafka, prefix: str) -> None:
    worker = make_worker(KafkaSettings(servers=kafka.bootstrap, prefix=f"{prefix}none."))
    worker.run()(lambda _: 1)
    with pytest.raises(ConfigError, match="fairstream topics"):
        worker.serve()


def test_a_worker_waits_for_a_kafka_that_is_not_up_and_can_be_stopped(
    caplog: pytest.LogCaptureFixture, prefix: str
) -> None:
    worker = make_worker(KafkaSettings(servers="127.0.0.1:1", prefix=prefix))
    worker.run()(lambda _: 1)
    with serving(worker):
        clock.wait_until(lambda: "no answer yet" in caplog.text, WAIT_S, what="the line that says so")
    assert caplog.text.count("no answer yet") == 1
