"""One deployment recorded on a real Kafka, with everything that happens to one; then audited as its owner would, and as
an insider who can write every file would have it.

Two schedulers and two shards: a shard's owner is killed, comes back, and the other one leaves. Meanwhile the rules
change, runs fail and are given back, tenants are refused, and what nobody can read is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from streams import clock
from streams.audit.export import ExportedRecording, export
from streams.audit.kafka_recording import KafkaRecording
from streams.audit.recording import MemoryRecording
from streams.audit.replay import ReplayOptions, ShardOutcome, replay_shards
from streams.cli.tree import app
from streams.core import reasons
from streams.core.policy import Policy, TenantRules, Window
from streams.errors import ConfigError, ExportDamaged
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import encode_completion, encode_request, partition_for
from tests.garbled import Garbled, Given, batch_of
from tests.integration.arithmetic import Evidence
from tests.integration.deployment import LEASES, Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.raw_batches import send
from tests.integration.traffic import Feeder, make_producer, traffic
from tests.unit.audit.verify.tampering import altered, doubled, dropped, mended, swapped

SHARDS: Final = (0, 1)
PER_S: Final = 80
WAIT_S: Final = 60.0


@dataclass
class Story:
    """What was recorded."""

    here: Deployment
    evidence: Evidence
    exported: Path  # all of it, as the command wrote it
    early: Path  # what there was while it was served
    served: list[ShardOutcome]  # the replay of that time


def more(feeder: Feeder, number: int) -> None:
    filed = feeder.filed
    clock.wait_until(lambda: feeder.filed >= filed + number, WAIT_S, what=f"{number} more requests")


def share(*schedulers: SchedulerProcess) -> None:
    def shared() -> bool:
        served = [scheduler.serving() for scheduler in schedulers]
        return all(served) and sorted(shard for each in served for shard in each or ()) == [*SHARDS]

    clock.wait_until(shared, WAIT_S, what="each scheduler to serve a shard")


def rules(weight: int) -> Policy:
    """A tenant of that weight; one that is served nothing, and one that may hardly wait."""
    return Policy(
        name="default",
        window=Window(runs=24),
        leases=LEASES,
        tenants={
            "tenant-1": TenantRules(weight=weight),
            "tenant-2": TenantRules(paused=True),
            "tenant-3": TenantRules(max_queued_runs=1),
        },
    )


def given(tenant: str, run_id: str) -> Given:
    return Given(encode_request(tenant=tenant, run_id=run_id, workflow="w", payload=1), tenant.encode())


def write_what_is_refused(here: Deployment) -> None:
    """No JSON, no tenant, a name that no client can read, a report on nobody's run, and too many runs at once."""
    producer = make_producer(here.servers)
    for value in (b"{", b'{"run_id":"r"}', b"\x00\x01", None):
        producer.produce(here.names.requests, value, b"somebody")
    stray = encode_completion(tenant="nobody", run_id="none", attempt=1, status="succeeded", tokens=1)
    producer.produce(here.names.completions, stray, b"nobody")
    assert producer.flush(WAIT_S) == 0
    garbled = given("tenant-1", "garbled")._replace(headers=[(Garbled("x"), b"1")])
    batch = batch_of(given("tenant-1", "beside"), garbled, at_ms=clock.now_ms())
    for shard in SHARDS:  # on one of them it stands astray, and is passed on
        assert send(here.servers, here.names.requests, batch, partition=shard) == [0]
    many = batch_of(*(given("tenant-3", f"many-{number}") for number in range(10)), at_ms=clock.now_ms())
    place = partition_for("tenant-3", len(SHARDS))
    assert send(here.servers, here.names.requests, many, partition=place) == [0]


def audit_while_served(here: Deployment, directory: Path) -> list[ShardOutcome]:
    recording = KafkaRecording(KafkaSettings(servers=here.servers, prefix=here.prefix))
    outcomes = replay_shards(recording, SHARDS, ReplayOptions(), jobs=1, tell=lambda _: None)
    export(recording, directory, now_ms=0)
    return outcomes


def play(here: Deployment, early: Path) -> tuple[Evidence, list[ShardOutcome]]:
    here.apply(rules(weight=1))
    with (
        here.scheduler("first") as first,
        here.scheduler("second") as second,
        traffic(here.servers, here.prefix, per_s=PER_S) as (feeder, _),
    ):
        share(first, second)
        more(feeder, PER_S)
        first.kill()
        second.wait_until_ready({*SHARDS})
        here.apply(rules(weight=4))
        write_what_is_refused(here)
        more(feeder, PER_S)
        first.start()
        share(first, second)
        more(feeder, PER_S // 2)
        served = audit_while_served(here, early)
        assert second.stop() == 0
        first.wait_until_ready({*SHARDS})
        here.apply(Policy(name="default", window=Window(runs=24), leases=LEASES))
        feeder.finish()
        return here.prove(), served


@pytest.fixture(scope="module")
def story(kafka: LocalKafka, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("audit")
    here = deploy(kafka.bootstrap, f"audit-{uuid.uuid4().hex[:8]}.", folder, shards=len(SHARDS), window=16)
    evidence, served = play(here, folder / "early")
    exported = folder / "exported"
    where = ["--kafka", here.servers, "--prefix", here.prefix]
    command = [sys.executable, "-m", "streams.cli", "audit", "export", str(exported), *where]
    subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True)
    return Story(here, evidence, exported, folder / "early", served)


def audit(*arguments: object) -> tuple[int, Any]:
    """Run one of the commands; return its exit status and what it printed, as JSON."""
    result = CliRunner().invoke(app, ["audit", *map(str, arguments), "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout)


def test_the_record_has_all_that_it_is_to_prove(story: Story) -> None:
    entries = [entry for each in story.evidence.journal.values() for entry in each]
    assert all(max(entry.epoch for entry in story.evidence.journal[shard]) > 1 for shard in SHARDS)
    assert any(decision.attempt > 1 for entry in entries for decision in entry.decisions)
    assert any(entry.unread for entry in entries)
    assert sum(len(entry.policies) for entry in entries) == 4 * len(SHARDS)
    refused = {rejection.reason for entry in entries for rejection in entry.rejections}
    assert {reasons.DUPLICATE, reasons.TENANT_PAUSED, reasons.QUEUE_FULL} <= refused
    assert all(any(entry.counts.get(name) for entry in entries) for name in ("forwarded", "unreadable"))


def test_every_step_comes_out_as_recorded_from_kafka_and_from_the_directory(story: Story) -> None:
    where = ["--kafka", story.here.servers, "--prefix", story.here.prefix]
    command = [sys.executable, "-m", "streams.cli", "audit", "replay", *where, "--json", "--jobs", "2"]
    live = json.loads(subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True).stdout)
    status, exported = audit("replay", "--from", story.exported, "--jobs", 1)
    assert status == 0
    for found in (live, exported):
        assert found["equal"]
        for shard in found["shards"]:
            last = story.evidence.journal[shard["shard"]][-1]
            assert (shard["steps"], shard["state"]) == (last.step, last.state)
    assert audit("verify", "--from", story.exported)[1] == {**audit("verify", *where)[1], "sound": True}


def test_a_deployment_is_audited_while_it_is_served(story: Story) -> None:
    """Its topics are read one after the other and grow meanwhile: all end with the same step, and nothing is amiss."""
    assert all(each.equal and each.steps > 1 for each in story.served), story.served
    status, replayed = audit("replay", "--from", story.early, "--jobs", 1)
    assert (status, replayed["equal"]) == (0, True)
    status, verified = audit("verify", "--from", story.early)
    assert (status, verified["problems"]) == (0, [])
    for shard in replayed["shards"]:
        assert shard["state"] == story.evidence.journal[shard["shard"]][shard["steps"] - 1].state
        assert story.served[shard["shard"]].steps <= shard["steps"] < story.evidence.journal[shard["shard"]][-1].step


def remembered(directory: Path) -> MemoryRecording:
    """An export, to be altered."""
    found = ExportedRecording(directory)
    return MemoryRecording(
        found.prefix,
        found.shards,
        {
            (topic, number): [*found.read(topic, number)]
            for topic in found.manifest.topics
            for number in range(found.partitions(topic))
        },
    )


def index_of(story: Story, shard: int, wanted: Callable[[Any], object]) -> int:
    """Where the first record of the journal stands that is as wanted: its step less one."""
    return next(entry.step - 1 for entry in story.evidence.journal[shard] if wanted(entry) and entry.step > 1)


def lighter(step: dict[str, Any]) -> None:
    step["policies"][0]["policy"]["tenants"]["tenant-1"]["weight"] = 3


def dearer(step: dict[str, Any]) -> None:
    step["settlements"]["actual"][0] += 1


@pytest.mark.parametrize(
    ("what", "insider"),
    [("a cost", False), ("a cost", True), ("a weight", True), ("dropped", True), ("doubled", True), ("swapped", True)],
)
def test_what_somebody_alters_in_the_directory_is_found_and_located(
    what: str, insider: bool, story: Story, tmp_path: Path
) -> None:
    record = remembered(story.exported)
    index = 10
    match what:
        case "a weight":
            index = index_of(story, 0, lambda entry: entry.policies and "tenant-1" in entry.policies[0].policy.tenants)
            forged = altered(record, "journal", 0, index, lighter)
        case "a cost":
            index = index_of(story, 0, lambda entry: entry.settlements)
            forged = altered(record, "journal", 0, index, dearer)
        case "dropped":
            forged = dropped(record, "journal", 0, index)
        case "doubled":
            forged = doubled(record, "journal", 0, index)
        case _:
            forged = swapped(record, "journal", 0, index)
    export(
        mended(forged, 0) if insider else forged, tmp_path / "forged", now_ms=0
    )  # and so the manifest is right again

    status, replayed = audit("replay", "--from", tmp_path / "forged", "--jobs", 1)
    assert status == 1
    found, other = replayed["shards"]
    assert found["divergence"]["step"] == index + 1 + (what == "doubled")
    assert other["equal"]
    status, verified = audit("verify", "--from", tmp_path / "forged")
    assert status == 1
    assert all(problem["shard"] == 0 for problem in verified["problems"])


def test_a_flipped_byte_of_a_file_is_named_with_its_place(story: Story, tmp_path: Path) -> None:
    directory = tmp_path / "flipped"
    directory.mkdir()
    for file in story.exported.iterdir():
        data = bytearray(file.read_bytes())
        if file.name == "completions-1-0.ndjson.gz":
            data[len(data) // 2] ^= 1
        (directory / file.name).write_bytes(data)
    with pytest.raises(ExportDamaged, match=r"completions-1-0\.ndjson\.gz: bytes \d+ to \d+ are not what was exported"):
        audit("replay", "--from", directory, "--jobs", 1)


def test_a_run_is_explained_and_the_record_played_under_fifo(story: Story) -> None:
    run = next(
        decision.run_id for entry in story.evidence.journal[0] for decision in entry.decisions if decision.attempt > 1
    )
    status, explained = audit("explain", run, "--from", story.exported)
    assert status == 0
    life = explained["run"]
    assert [attempt["attempt"] for attempt in life["attempts"]] == [1, 2]
    assert sum(life["time_ms"].values()) == life["ended"]["at_ms"] - life["arrived_ms"]
    assert audit("explain", run, "--kafka", story.here.servers, "--prefix", story.here.prefix) == (0, explained)
    status, played = audit("what-if", "--fifo", "--from", story.exported)
    assert status == 0
    entries = [entry for each in story.evidence.journal.values() for entry in each]
    record = played["record"]
    assert record["states"]["succeeded"] == sum(entry.counts.get("succeeded", 0) for entry in entries)
    assert record["attempts"] == sum(len(entry.decisions) for entry in entries), "all were played, and ended"
    assert record["steps_without_inputs"] == 0
    assert "no_request" not in record["left_out"]
    assert played["what_if"]["served_runs"] == record["runs"]


def test_a_deployment_that_there_is_not_is_told_from_an_empty_one(kafka: LocalKafka) -> None:
    with pytest.raises(ConfigError, match=r"^nowhere\.requests: no such topic"):
        audit("replay", "--kafka", kafka.bootstrap, "--prefix", "nowhere.")
