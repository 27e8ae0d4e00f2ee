"""Schedulers that start at the same moment, and one that another writer robs: every shard is served, and none ends."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from streams import clock
from streams.local import LocalKafka
from tests.integration.deployment import deploy
from tests.integration.traffic import traffic

SHARDS = {0, 1, 2, 3}
TIMES = 20 if os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly" else 2
SETTLED_S = 90  # on a busy machine; it takes a few seconds


@pytest.mark.chaos
@pytest.mark.slow
def test_schedulers_that_start_at_the_same_moment_serve_every_shard_and_none_ends(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    """The fence for an assignment that has been replaced may come after the new owner's: then that one is robbed."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=len(SHARDS))
    # In no test would it last this long: whoever waits for that before it mends itself fails here.
    schedulers = [here.scheduler(f"scheduler-{number}", lost_shard_grace_s=600) for number in range(3)]

    def served() -> bool:
        assert [scheduler.poll() for scheduler in schedulers] == [None] * len(schedulers)
        found = [scheduler.serving() for scheduler in schedulers]
        return None not in found and sorted(n for shards in found for n in shards or ()) == sorted(SHARDS)

    with ExitStack() as stack, traffic(here.servers, prefix, per_s=100) as (feeder, _):
        for scheduler in schedulers:
            stack.enter_context(scheduler)
        for left in reversed(range(TIMES)):
            clock.wait_until(served, SETTLED_S, what="every shard to be served by one of three")
            if left:
                for scheduler in schedulers:
                    scheduler.kill()
                for scheduler in schedulers:
                    scheduler.start()
        feeder.finish()
        here.prove()
