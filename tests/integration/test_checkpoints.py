"""Checkpoints on a real Kafka: written beside the steps by whoever serves, and enough once inputs are gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streams import clock
from streams.admin.checkpointing import write_checkpoint
from streams.admin.kafka import admin_client, look
from streams.admin.topics import Layout, ensure
from streams.audit.checkpoints import Checkpoint, feet, latest_before, of_state, open_checkpoint, prove
from streams.audit.export import ExportedRecording
from streams.audit.kafka_recording import KafkaRecording
from streams.audit.replay import ShardReplay
from streams.errors import NotReplayable
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from tests.integration.deployment import Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import traffic

SHARDS: Final = 2
WAIT_S: Final = 60.0


def forget(admin: AdminClient, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    admin.delete_topics([topic])[topic].result(WAIT_S)
    clock.wait_until(lambda: topic not in look(admin).partitions, WAIT_S, what=f"{topic} is gone")


def recording(here: Deployment) -> KafkaRecording:
    return KafkaRecording(KafkaSettings(servers=here.servers, prefix=here.prefix))


def wait_for_some(here: Deployment, number: int) -> None:
    """Until each shard has so many more checkpoints, each after another step."""
    before = {shard: len([*feet(recording(here), shard)]) for shard in range(SHARDS)}

    def there() -> bool:
        found = recording(here)
        return all(len([*feet(found, shard)]) >= before[shard] + number for shard in before)

    clock.wait_until(there, WAIT_S, 0.5, what=f"{number} checkpoints of each shard")


def leave_one_unfinished(here: Deployment) -> None:
    """As a process does that is killed while it writes: a head, and no foot."""

    def killed(_late: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(KafkaSettings(servers=here.servers, prefix=here.prefix), 0, between=killed)


def lacking_the_topic(here: Deployment, admin: AdminClient, scheduler: SchedulerProcess) -> None:
    """A deployment of an older version is served, and one is told what to run."""
    scheduler.wait_until_ready({0, 1})
    said = "create the topics with `fairstream topics`"
    clock.wait_until(lambda: said in scheduler.log.read_text(), WAIT_S, what="it says why there are no checkpoints")
    assert here.names.checkpoints not in look(admin).partitions, "nobody makes it by the way, with Kafka's settings"
    ensure(admin, Layout(shards=SHARDS, dispatch_partitions=SHARDS, prefix=here.prefix))


def replay(found: KafkaRecording, shard: int, start: Checkpoint | None) -> tuple[int, str]:
    """The number of steps from there to the end, and the state that they lead to."""
    steps, state = 0, ""
    walk = ShardReplay(found, shard, start)
    for step in walk:
        steps += 1
        state = step.entry.state
    assert walk.divergence is None
    return steps, state


def delete_inputs(admin: AdminClient, here: Deployment, shard: int, start: Checkpoint) -> None:
    """What retention does to what the checkpoint stands for."""
    assert start.positions is not None
    gone = [
        TopicPartition(here.prefix + topic, shard, last + 1) for topic, last in sorted(start.positions.applied.items())
    ]
    for future in admin.delete_records(gone).values():
        future.result(WAIT_S)


def test_a_scheduler_writes_them_and_a_replay_needs_nothing_older(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=SHARDS)
    admin = admin_client(KafkaSettings(servers=here.servers))
    forget(admin, here.names.checkpoints)
    # A second is far too short: they are written all the time, also in the middle of steps and when it is killed.
    scheduler = here.scheduler(checkpoint_interval_s=1)
    with scheduler, traffic(here.servers, prefix, per_s=100) as (feeder, _):
        lacking_the_topic(here, admin, scheduler)
        wait_for_some(here, 2)
        scheduler.kill()
        leave_one_unfinished(here)
        scheduler.start(checkpoint_interval_s=0)
        scheduler.wait_until_ready({0, 1})
        feeder.finish()
        evidence = here.prove()
        assert scheduler.stop() == 0
    found = recording(here)
    by_hand(here, "--to", str(tmp_path / "kept"))
    kept = ExportedRecording(tmp_path / "kept")
    for shard in range(SHARDS):
        last = len(evidence.journal[shard])
        checkpoints = [open_checkpoint(found, offset, foot) for offset, foot in feet(found, shard)]
        assert len({each.step for each in checkpoints}) >= 2
        assert all(prove(found, each) for each in checkpoints)
        steps, state = replay(found, shard, None)
        assert steps == last
        for each in checkpoints:
            assert replay(found, shard, each) == (last - each.step, state)
        start = latest_before(found, shard, step=checkpoints[0].step - 1)
        assert start is not None
        delete_inputs(admin, here, shard, start)
        with pytest.raises(NotReplayable):
            replay(found, shard, None)
        assert replay(found, shard, start) == (last - start.step, state)
        standing = of_state(kept, shard)
        assert standing is not None
        assert prove(found, standing)
        assert replay(found, shard, standing) == (0, ""), "it is the last state"
    after = {each["shard"]: each["step"] for each in by_hand(here)["checkpoints"]}
    assert after == {shard: len(entries) for shard, entries in evidence.journal.items()}


def by_hand(here: Deployment, *options: str) -> Any:
    """What `fairstream audit checkpoint` says it has written."""
    command = ["audit", "checkpoint", "--json", "--kafka", here.servers, "--prefix", here.prefix, *options]
    done = subprocess.run([sys.executable, "-m", "streams.cli", *command], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)
