"""Makes the record that AUDIT.md shows, on a real Kafka: `python -m tests.audit_example`; then correct the page.

Two schedulers, two shards, a fleet of simulated workers. One tenant files 60 runs at once, beyond its limit; the rules
change; a scheduler is killed and comes back. To be made anew when the version of the core is raised: see the page.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.audit.export import export
from streams.audit.kafka_recording import KafkaRecording
from streams.client import Publisher
from streams.core.policy import Policy, TenantRules, Window
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.local.owned import OwnedProcess
from streams.wire import PolicyChange, decode_journal
from tests.integration.processes import SchedulerProcess

EXAMPLE: Final = Path(__file__).parent / "data" / "audit_example"

_SHARDS: Final = 2
_SPEED: Final = 1_500  # tokens a second of a run
_WORKFLOWS: Final = {"answer": 1_000, "research": 2_500}  # mean tokens
_FIRST: Final = (("meridian", 60), ("garnet", 30), ("borealis", 25))  # filed at once
_LATER: Final = ("dune", "harbor")  # one run each second
_LATER_RUNS: Final = 10
_CHANGE_AT, _KILL_AT, _BACK_AT = 3, 5, 8  # seconds


def rules(meridian: int = 1) -> Policy:
    return Policy(
        name="example",
        quantum=1_000,
        window=Window(runs=8),
        tenants={
            "meridian": TenantRules(plan="starter", weight=meridian, max_queued_runs=50),
            "garnet": TenantRules(plan="team", weight=2),
            "borealis": TenantRules(plan="team", weight=2),
            "dune": TenantRules(plan="enterprise", weight=4),
            "harbor": TenantRules(plan="enterprise", weight=4),
        },
    )


def make(directory: Path) -> None:
    """Play the story and export its topics."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kafka = KafkaSettings(servers=stack.enter_context(LocalKafka()).bootstrap, prefix="runs.")
        ensure(admin_client(kafka), Layout(shards=_SHARDS, dispatch_partitions=_SHARDS, prefix=kafka.prefix))
        state(kafka, rules(), "ana@example.org")
        schedulers = [
            stack.enter_context(
                SchedulerProcess(folder, f"s{number}", kafka=kafka.servers, prefix=kafka.prefix, shards=_SHARDS)
            )
            for number in range(2)
        ]
        clock.wait_until(lambda: all(each.serving() for each in schedulers), 60, what="a shard for each scheduler")
        place = ["--kafka", kafka.servers, "--prefix", kafka.prefix]
        speed = ["--tokens-per-second", str(_SPEED), "--concurrency", "16", "--name", "fleet"]
        stack.enter_context(OwnedProcess(["worker", "--simulate", *speed, *place], folder / "fleet.log"))
        recording = KafkaRecording(kafka)
        with Publisher(kafka) as publisher:
            publisher.submit("rehearsal", "warm-up", "rehearsal", {"tokens": 1})  # until the fleet has joined its group
            publisher.flush()
            clock.wait_until(lambda: ended(recording) == (1, 1), 60, 0.5, what="the first run")
            play(kafka, publisher, schedulers[1])
        clock.wait_until(lambda: len(set(ended(recording))) == 1, 120, 0.5, what="all runs")
        shutil.rmtree(directory, ignore_errors=True)
        export(recording, directory, now_ms=clock.now_ms())


def play(kafka: KafkaSettings, publisher: Publisher, victim: SchedulerProcess) -> None:
    random = Random(7)

    def file(tenant: str, number: int) -> None:
        workflow = random.choice(sorted(_WORKFLOWS))
        tokens = int(random.lognormvariate(0, 0.5) * _WORKFLOWS[workflow])
        publisher.submit(tenant, f"{tenant}-{number:02}", workflow, {"tokens": tokens})

    for tenant, runs in _FIRST:
        for number in range(runs):
            file(tenant, number)
    for second in range(_LATER_RUNS):
        if second == _CHANGE_AT:
            state(kafka, rules(meridian=2), "ben@example.org")
        if second == _KILL_AT:
            victim.kill()
        if second == _BACK_AT:
            victim.start()
        for tenant in _LATER:
            file(tenant, second)
        threading.Event().wait(1)


def state(kafka: KafkaSettings, policy: Policy, author: str) -> None:
    publish_policy(kafka, PolicyChange(policy, author, clock.now_ms()))


def ended(recording: KafkaRecording) -> tuple[int, int]:
    """How many runs have been accepted, and how many of them have succeeded: all do in this story."""
    accepted = succeeded = 0
    for shard in range(_SHARDS):
        for record in recording.read("journal", shard):
            counts = decode_journal(record.value).counts
            accepted += counts.get("accepted", 0)
            succeeded += counts.get("succeeded", 0)
    return accepted, succeeded


if __name__ == "__main__":
    make(EXAMPLE)
