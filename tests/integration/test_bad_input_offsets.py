"""Faults of offsets, rebalances and back-pressure that others have had, on one deployment, by their ids.

One story, told once: transactions among the inputs, offsets that are set back, a crash in the middle of a step, a
rebalance while more waits than may be held in memory, and a partition that is added. The whole of it must add up.
"""

from __future__ import annotations

import signal
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined] # the module names its exports nowhere

from streams import clock
from streams.admin.kafka import admin_client
from streams.app.settings import Settings
from streams.core.policy import Policy, TenantRules, Window
from streams.core.records import RunRecord
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import PARTITIONER, partition_for
from tests.integration.arithmetic import Evidence, problems, problems_when_drained
from tests.integration.deployment import LEASES, Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.teller import WAIT_S, Teller, value_of
from tests.integration.topics import read_topic
from tests.integration.traffic import Workers

SHARDS = 2
MINE = next(name for name in map("tenant-{}".format, range(100)) if partition_for(name, SHARDS) == 0)
SLOW = next(name for name in map("slow-{}".format, range(100)) if partition_for(name, SHARDS) == 0)
WAVE = 400  # runs that are filed at once
INBOX = 200  # records that may wait in memory for a shard
SMALL_STEPS = {"inbox_records": INBOX, "max_step_inputs": 50, "step_pause_ms": 500}
# Beside what it held when idle: 200 records for each shard, and what aiokafka has fetched ahead, are a few MiB.
MAX_GROWTH_BYTES = 100 << 20


@dataclass
class Story:
    """What there was to see, in the order in which it happened."""

    here: Deployment
    in_transactions: list[str] = field(default_factory=list)  # the runs of transactions that were committed
    idle: Evidence | None = None  # when only what is queued, and what holds it up, was left
    committed: dict[int, int] = field(default_factory=dict)  # by the group, of the requests, at that time
    set_back: dict[int, int] = field(default_factory=dict)  # the same, after it was set back
    crash: str = ""  # the trace of the fault
    at_the_crash: Evidence | None = None
    waves: int = 0  # so many were filed around the rebalance
    behind: int = 0  # records that had not been applied when the second scheduler joined
    growth_bytes: int = 0
    evidence: Evidence | None = None
    log_after: str = ""
    added: list[bytes | None] = field(default_factory=list)  # what lies on the added partition in the end

    def times(self) -> Counter[tuple[str, str]]:
        assert self.evidence is not None
        return Counter((each.tenant, each.run_id) for each in self.evidence.dispatches)


def requests_of(here: Deployment) -> list[TopicPartition]:
    return [TopicPartition(here.names.requests, shard) for shard in range(SHARDS)]


def group_of(here: Deployment) -> str:
    return Settings(prefix=here.prefix).group_id


def committed(here: Deployment) -> dict[int, int]:
    admin = admin_client(KafkaSettings(servers=here.servers, prefix=here.prefix))
    asked = ConsumerGroupTopicPartitions(group_of(here), requests_of(here))
    (answer,) = [future.result() for future in admin.list_consumer_group_offsets([asked]).values()]
    return {each.partition: each.offset for each in answer.topic_partitions or ()}


def write_in_transactions(here: Deployment, story: Story) -> None:
    """Before there is any scheduler, or any group: two transactions that come through, one between that does not."""
    producer = Producer(
        {"bootstrap.servers": here.servers, "partitioner": PARTITIONER, "transactional.id": f"{here.prefix}producer"}
    )
    producer.init_transactions()
    for number, ends_well in enumerate((True, False, True)):
        producer.begin_transaction()
        for run in range(5):
            run_id = f"transaction-{number}-{run}"
            producer.produce(here.names.requests, value_of(MINE, run_id), MINE.encode())
            if ends_well:
                story.in_transactions.append(run_id)
        producer.flush()
        if ends_well:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def leave_one_queued(here: Deployment, teller: Teller, story: Story) -> None:
    """Ten runs: 3 waits behind a run that goes on, the others are finished. Then the scheduler is idle."""
    teller.file(value_of(SLOW, "goes-on"), SLOW.encode())
    for number in range(10):
        tenant = SLOW if number == 3 else MINE
        teller.file(value_of(tenant, f"run-{number}"), tenant.encode())
    teller.flush()

    def idle() -> bool:
        teller.finish(but={"goes-on"})
        story.idle, story.committed = here.gather(), committed(here)
        waiting = [row.run_id for row in story.idle.rows_of(0, RunRecord)]
        last = max(seen.offset for seen in story.idle.requests if seen.partition == 0)
        return sorted(waiting) == ["goes-on", "run-3"] and story.committed[0] == last + 1

    clock.wait_until(idle, WAIT_S, 0.3, what="one run to be left, and the offsets to be committed")


def set_offsets_back(here: Deployment, story: Story) -> None:
    """Let the group begin again from the first record: 5 6 7 come again, and all the others."""
    admin = admin_client(KafkaSettings(servers=here.servers, prefix=here.prefix))
    back = [TopicPartition(each.topic, each.partition, 0) for each in requests_of(here)]
    wanted = ConsumerGroupTopicPartitions(group_of(here), back)

    def accepted() -> bool:  # not before the group has noticed that its member is gone
        (future,) = admin.alter_consumer_group_offsets([wanted]).values()
        story.set_back = committed(here) if future.exception() is None else {}
        return set(story.set_back.values()) == {0}

    clock.wait_until(accepted, WAIT_S, 0.3, what="the group to be empty, and its offsets to be set back")


def crash_in_a_step(here: Deployment, scheduler: SchedulerProcess, teller: Teller, story: Story, folder: Path) -> None:
    """Five runs arrive in a step that is killed between the third's records and its commit."""
    arm, trace = folder / "arm", folder / "trace"
    scheduler.start(faults=f"before_commit=1;arm={arm};trace={trace}")
    scheduler.wait_until_ready(set(range(SHARDS)))
    arm.write_text("before_commit")
    for number in range(5):
        teller.file(value_of(MINE, f"crash-{number}"), MINE.encode())
    teller.flush()
    clock.wait_until(lambda: not scheduler.running, WAIT_S, what="the crash")
    story.crash, story.at_the_crash = trace.read_text(), here.gather()


def unapplied(here: Deployment) -> int:
    evidence = here.gather()
    return sum(seen.offset > evidence.applied[seen.partition].get("requests", -1) for seen in evidence.requests)


def rebalance_under_pressure(here: Deployment, scheduler: SchedulerProcess, teller: Teller, story: Story) -> None:
    """A second scheduler comes and goes, and all the time more is filed than steps can take and inboxes can hold."""
    scheduler.start(**SMALL_STEPS)
    scheduler.wait_until_ready(set(range(SHARDS)))
    process = psutil.Process(scheduler.pid)
    idle_bytes = process.memory_info().rss

    def file_more() -> None:
        for number in range(WAVE):
            tenant = f"wave-{number % 20}"
            teller.file(value_of(tenant, f"wave-{story.waves}-{number}", "x" * 1_000), tenant.encode())
        teller.flush()
        story.waves += 1
        story.growth_bytes = max(story.growth_bytes, process.memory_info().rss - idle_bytes)

    def until(done: Callable[[], object], what: str) -> None:
        def more() -> bool:
            file_more()
            return bool(done())

        clock.wait_until(more, WAIT_S, 0.2, what=what)

    with here.scheduler("second", **SMALL_STEPS) as second:
        until(second.serving, "the second scheduler to have joined")
        story.behind = unapplied(here)
        second.send(signal.SIGTERM)
        until(lambda: not second.running, "the second scheduler to have left")
    until(lambda: scheduler.serving() == set(range(SHARDS)), "all shards to be back")
    assert scheduler.stop() == 0
    scheduler.start()  # in steps of the usual size, or it would take long
    workers = Workers(here.servers, here.prefix)
    workers.start()
    try:
        clock.wait_until(lambda: unapplied(here) == 0, WAIT_S, 0.5, what="all to be applied")
        story.evidence = here.prove()
    finally:
        workers.finish()


def add_a_partition(here: Deployment, scheduler: SchedulerProcess, story: Story) -> None:
    admin = admin_client(KafkaSettings(servers=here.servers, prefix=here.prefix))
    admin.create_partitions([NewPartitions(here.names.requests, SHARDS + 1)])[here.names.requests].result()
    producer = Producer({"bootstrap.servers": here.servers})
    producer.produce(here.names.requests, value_of(MINE, "added"), MINE.encode(), SHARDS)
    assert producer.flush(WAIT_S) == 0
    scheduler.start()
    refused = f"{here.names.requests}: {SHARDS + 1} partitions, {SHARDS} wanted"
    clock.wait_until(lambda: refused in scheduler.log.read_text(), WAIT_S, what="a refusal of the added partition")
    if scheduler.running:
        scheduler.kill()
    story.added = [seen.value for seen in read_topic(here.servers, here.names.requests) if seen.partition == SHARDS]


@pytest.fixture(scope="module")
def story(kafka: LocalKafka, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("offsets")
    here = deploy(kafka.bootstrap, f"bad-offsets-{uuid.uuid4().hex[:8]}.", folder, shards=SHARDS)
    here.apply(Policy(window=Window(runs=500), leases=LEASES, tenants={SLOW: TenantRules(max_runs_in_flight=1)}))
    told, teller = Story(here), Teller(here)
    write_in_transactions(here, told)
    with here.scheduler() as scheduler:
        scheduler.wait_until_ready(set(range(SHARDS)))
        leave_one_queued(here, teller, told)
        scheduler.kill()
        set_offsets_back(here, told)
        crash_in_a_step(here, scheduler, teller, told, folder)
        rebalance_under_pressure(here, scheduler, teller, told)
        assert scheduler.stop() == 0
        add_a_partition(here, scheduler, told)
        told.log_after = scheduler.log.read_text()
    return told


def test_all_of_it_adds_up(story: Story) -> None:
    assert story.evidence is not None
    assert [*problems(story.evidence), *problems_when_drained(story.evidence)] == []


def test_fault_43_a_run_that_is_still_queued_outlives_the_offsets_behind_it(story: Story) -> None:
    """Its offset is applied, and so committed; what keeps it is its row. It is served after the restart, once."""
    assert story.idle is not None
    (offset,) = [seen.offset for seen in story.idle.requests if b'"run-3"' in (seen.value or b"")]
    assert offset < story.idle.applied[0]["requests"]
    served = story.times()
    assert served[SLOW, "run-3"] == 1
    assert all(served[MINE, f"run-{number}"] for number in range(10) if number != 3)


def test_fault_45_nothing_lags_though_transactions_leave_gaps_in_the_offsets(story: Story) -> None:
    assert story.idle is not None
    offsets = [seen.offset for seen in story.idle.requests if seen.partition == 0]
    assert len(offsets) < offsets[-1] + 1, "there are gaps"
    assert story.idle.applied[0]["requests"] == offsets[-1]
    assert story.committed[0] == offsets[-1] + 1
    served = {run_id for tenant, run_id in story.times() if run_id.startswith("transaction-")}
    assert served == set(story.in_transactions)


def test_fault_47_what_comes_again_is_not_served_again(story: Story) -> None:
    assert story.set_back[0] == 0
    assert story.evidence is not None
    attempts = Counter((each.tenant, each.run_id, each.attempt) for each in story.evidence.dispatches)
    assert set(attempts.values()) == {1}
    assert story.evidence.refusals == [], "not even as duplicates"


def test_fault_51_a_step_that_fails_commits_nothing(story: Story) -> None:
    assert "before_commit" in story.crash
    assert story.at_the_crash is not None
    offsets = [seen.offset for seen in story.at_the_crash.requests if b'"crash-' in (seen.value or b"")]
    assert len(offsets) == 5
    assert story.at_the_crash.applied[0]["requests"] < min(offsets)
    assert not [each for each in story.at_the_crash.dispatches if each.run_id.startswith("crash-")]
    assert all(story.times()[MINE, f"crash-{number}"] for number in range(5))


def test_fault_53_what_was_fetched_before_a_rebalance_is_read_again_after_it(story: Story) -> None:
    assert story.behind > INBOX * SHARDS, "both schedulers had something fetched"
    waves = Counter(run_id for tenant, run_id in story.times() if run_id.startswith("wave-"))
    assert len(waves) == story.waves * WAVE
    assert story.evidence is not None
    for shard in range(SHARDS):
        ranges = [each for entry in story.evidence.journal[shard] for each in entry.inputs if each.topic == "requests"]
        assert [each.first for each in ranges[1:]] == [each.last + 1 for each in ranges[:-1]]


def test_fault_59_a_partition_that_is_added_is_refused_and_nothing_on_it_is_passed_over(story: Story) -> None:
    """Partitions are shards: one more would move tenants. What stood there before any scheduler did is read, too."""
    assert f"{SHARDS + 1} partitions, {SHARDS} wanted" in story.log_after
    assert story.added == [value_of(MINE, "added")]
    assert (MINE, "added") not in story.times()
    assert story.in_transactions  # written before the group had any offsets, and served: see fault 45


def test_fault_69_back_pressure_holds_through_a_rebalance(story: Story) -> None:
    assert story.behind > INBOX * SHARDS
    assert story.growth_bytes < MAX_GROWTH_BYTES
