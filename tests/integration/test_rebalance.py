"""Two schedulers share the shards of a deployment; they come, go, freeze and come back."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams import clock
from streams.local import LocalKafka
from tests.integration.deployment import deploy
from tests.integration.processes import SESSION_S, SchedulerProcess
from tests.integration.traffic import Feeder, traffic

SHARDS = {0, 1, 2, 3}


def share(*schedulers: SchedulerProcess) -> None:
    """Wait until all shards are served, each by one, and every scheduler has some."""

    def shared() -> bool:
        found = [scheduler.serving() for scheduler in schedulers]
        return all(found) and sorted(n for shards in found for n in shards or ()) == sorted(SHARDS)

    clock.wait_until(shared, 60, what="the shards to be shared")


def more(feeder: Feeder, number: int) -> None:
    filed = feeder.filed
    clock.wait_until(lambda: feeder.filed >= filed + number, 60, what=f"{number} more requests")


@contextmanager
def alone(scheduler: SchedulerProcess) -> Iterator[None]:
    """Wait until a scheduler serves all shards by itself, before another one joins.

    Of two that begin within the same moment, one may fence a shard for an assignment that has just been replaced; the
    other then loses it, and ends after `lost_shard_grace_s` for its supervisor to start it again.
    """
    scheduler.wait_until_ready(SHARDS)
    yield


def test_shards_move_between_schedulers_under_load(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with (
        here.scheduler("first") as first,
        alone(first),
        here.scheduler("second") as second,
        traffic(here.servers, prefix, per_s=300) as (feeder, _),
    ):
        share(first, second)
        more(feeder, 300)
        assert first.stop() == 0
        second.wait_until_ready(SHARDS)
        more(feeder, 300)
        first.start()
        share(first, second)
        more(feeder, 300)
        second.kill()
        first.wait_until_ready(SHARDS)
        more(feeder, 300)
        feeder.finish()
        here.prove()


def test_a_shard_that_stays_is_not_loaded_again(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with here.scheduler("first") as first, traffic(here.servers, prefix, per_s=200) as (feeder, _):
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


def test_a_frozen_scheduler_that_wakes_up_can_write_nothing(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    with (
        here.scheduler("zombie") as zombie,
        alone(zombie),
        here.scheduler("heir") as heir,
        traffic(here.servers, prefix, per_s=200) as (feeder, _),
    ):
        share(zombie, heir)
        for _ in range(2):
            more(feeder, 100)
            zombie.send(signal.SIGSTOP)
            heir.wait_until_ready(SHARDS)  # missed, fenced, taken over
            more(feeder, 100)
            zombie.send(signal.SIGCONT)
            share(zombie, heir)  # it finds out, drops what it had, and rejoins
        feeder.finish()
        here.prove()
        assert zombie.poll() is None
    assert SESSION_S < 10  # a freeze is noticed while the test still runs
