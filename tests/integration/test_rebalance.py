"""Several schedulers share the shards of a deployment; they come and go, and are restarted one after the other."""

import os
from pathlib import Path

import pytest

from streams import clock
from streams.local import LocalKafka
from tests.integration.deployment import deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import Feeder, traffic

SHARDS = {0, 1, 2}
PER_S = 100
TIMES = 20 if os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly" else 2  # that a member comes and goes


def share(*schedulers: SchedulerProcess) -> None:
    """Wait until all shards are served, each by one, and every scheduler has some."""

    def shared() -> bool:
        found = [scheduler.serving() for scheduler in schedulers]
        return all(found) and sorted(n for shards in found for n in shards or ()) == sorted(SHARDS)

    clock.wait_until(shared, 60, what="the shards to be shared")


def more(feeder: Feeder, number: int) -> None:
    filed = feeder.filed
    clock.wait_until(lambda: feeder.filed >= filed + number, 60, what=f"{number} more requests")


@pytest.mark.chaos
def test_fault_55_a_member_that_comes_and_goes_under_load(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with (
        here.scheduler("first") as first,
        here.scheduler("second") as second,
        traffic(here.servers, prefix, per_s=PER_S) as (feeder, _),
    ):
        pid = first.pid
        for number in range(TIMES):
            if number:
                second.start()
            share(first, second)
            more(feeder, PER_S)
            assert second.stop() == 0
            first.wait_until_ready(SHARDS)
        feeder.finish()
        evidence = here.prove()
        assert first.poll() is None
        assert first.pid == pid  # no crash, and no loop of them
    epochs = {shard: entries[-1].epoch for shard, entries in evidence.journal.items()}
    assert sum(epochs.values()) >= len(SHARDS) + 2 * TIMES - 1, epochs  # there and back: the first one may begin there


def test_a_rolling_restart_of_three_under_load(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with (
        here.scheduler("first") as first,
        here.scheduler("second") as second,
        here.scheduler("third") as third,
        traffic(here.servers, prefix, per_s=PER_S) as (feeder, _),
    ):
        three = (first, second, third)
        share(*three)
        for each in three:
            more(feeder, PER_S)
            assert each.stop() == 0
            each.start()
            share(*three)
        feeder.finish()
        evidence = here.prove()
    epochs = {shard: entries[-1].epoch for shard, entries in evidence.journal.items()}
    assert sum(epochs.values()) >= len(SHARDS) + len(three), epochs  # each of them had a shard to give away


def test_a_shard_that_stays_is_not_loaded_again(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with here.scheduler("first") as first, traffic(here.servers, prefix, per_s=PER_S) as (feeder, _):
        first.wait_until_ready(SHARDS)
        more(feeder, 100)
        with here.scheduler("second") as second:
            share(first, second)
            stayed, moved = first.serving(), second.serving()
            more(feeder, 200)
        assert stayed is not None
        assert moved is not None
        feeder.finish()
        first.wait_until_ready(SHARDS)
        evidence = here.prove()
    epochs = {shard: entries[-1].epoch for shard, entries in evidence.journal.items()}
    assert all(epochs[shard] == 1 for shard in stayed), epochs
    assert all(epochs[shard] == 3 for shard in moved), epochs  # there and back
