"""A scheduler that stops and comes back under load, politely or not, goes on where it was."""

import signal
from pathlib import Path

from streams import clock
from streams.local import LocalKafka
from tests.integration.deployment import deploy
from tests.integration.traffic import traffic


def test_restarts_under_load_lose_nothing(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    with here.scheduler() as scheduler, traffic(here.servers, prefix, per_s=300) as (feeder, _):
        scheduler.wait_until_ready({0, 1})
        for _ in range(2):
            filed = feeder.filed
            clock.wait_until(lambda: feeder.filed > filed + 300, 30, what="a second of traffic")  # noqa: B023
            assert scheduler.stop() == 0
            scheduler.start()
            scheduler.wait_until_ready({0, 1})
        feeder.finish()
        evidence = here.prove()
    assert all(entries[-1].epoch == 3 for entries in evidence.journal.values())


def test_an_interrupt_ends_it_as_a_termination_does(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        scheduler.send(signal.SIGINT)
        assert clock.wait_until(lambda: scheduler.poll() is not None, 5, what="its end")
        assert scheduler.poll() == 0


def test_a_stopped_scheduler_leaves_the_group_at_once(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    # A session this long would show if the second had to wait for the first to be missed.
    with here.scheduler("first", session_timeout_s=100) as first:
        first.wait_until_ready({0})
        with here.scheduler("second", session_timeout_s=100) as second:
            clock.wait_until(lambda: second.serving() == set(), 60, what="the second to be a member without shards")
            assert first.stop() == 0
            begun = clock.monotonic()
            second.wait_until_ready({0})
            assert clock.monotonic() - begun < 30
