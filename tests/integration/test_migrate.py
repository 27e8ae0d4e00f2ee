"""Another number of shards on a real Kafka: under backlog, killed in the middle, and every run served all the same."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams import clock
from streams.admin.migration.migrate import FILL, MOVE, SWEEP, Migration, Outcome
from streams.audit.checkpoints import latest_before
from streams.audit.kafka_recording import KafkaRecording
from streams.audit.replay import ShardReplay
from streams.core.records import FlightRecord, FlowRecord, RunRecord
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from tests.integration.arithmetic import Evidence, accepted
from tests.integration.deployment import Deployment, deploy
from tests.integration.killed_migration import KILLED, killed
from tests.integration.processes import SchedulerProcess
from tests.integration.topics import read_topic
from tests.integration.traffic import Feeder, Workers, make_producer

RUNS = 400  # with the window of 16, most of them wait
WAKING = 10
UNREADABLE = b"\xff no request"
MORE = 60  # sent to the old topics when nobody reads them any more
END_S = 30.0


def migration(old: Deployment, new: Deployment) -> Migration:
    before, after = (KafkaSettings(servers=each.servers, prefix=each.prefix) for each in (old, new))
    return Migration(before, after, new.shards)


def moved(old: Deployment, shards: int, name: str) -> Deployment:
    return Deployment(old.servers, f"{old.prefix}{name}.", shards, old.folder)


def file(old: Deployment, runs: int, feeder: Feeder | None = None) -> Feeder:
    """File so many runs at once."""
    feeder = feeder or Feeder(old.servers, old.prefix, per_s=1)
    for _ in range(runs):
        feeder.file()
    feeder.finish()
    return feeder


def wrong(outcome: Outcome) -> list[str]:
    return [str(line) for line in outcome.lines if not line.equal]


def taken(old: Evidence, new: Evidence) -> set[tuple[str, str]]:
    """The runs that either of them has accepted: what the old shards had not read, the new ones have."""
    return accepted(old) | accepted(new)


def problems(old: Evidence, new: Evidence) -> Iterator[str]:
    """What is wrong with two deployments that are one, once all is served."""
    dispatches = [*old.dispatches, *new.dispatches]
    times = Counter((each.tenant, each.run_id, each.attempt) for each in dispatches)
    yield from (f"{attempt} was dispatched {number} times" for attempt, number in times.items() if number > 1)
    attempts: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for tenant, run_id, attempt in times:
        attempts[tenant, run_id].add(attempt)
    yield from (f"{run}: {got}" for run, got in attempts.items() if got != set(range(1, len(got) + 1)))
    yield from (f"{run} was accepted and never dispatched" for run in taken(old, new) - attempts.keys())
    settlements = [
        each for side in (old, new) for own in side.journal.values() for entry in own for each in entry.settlements
    ]
    settled = Counter((each.tenant, each.run_id, each.attempt) for each in settlements)
    yield from (f"{attempt} was settled {number} times" for attempt, number in settled.items() if number > 1)
    if settled.keys() != times.keys():
        yield f"dispatched and not settled: {list(times.keys() - settled.keys())[:5]}"
    rows = [row for own in new.rows.values() for row in own]
    actual = 0
    for row in rows:
        if isinstance(row, FlowRecord):
            actual += row.actual
            if row.charged != row.actual:
                yield f"{row.tenant} was charged {row.charged} and spent {row.actual}"
        elif isinstance(row, RunRecord | FlightRecord):
            yield f"still there: {row.tenant}/{row.run_id}"
    if actual != sum(each.actual for each in settlements):
        yield f"{actual} tokens stand in the accounts, {sum(each.actual for each in settlements)} were settled"
    for shard, entries in new.journal.items():
        if [entry.step for entry in entries] != list(range(1, len(entries) + 1)):
            yield f"shard {shard}: the steps are not 1, 2, 3, ..."


@pytest.fixture
def old(kafka: LocalKafka, prefix: str, tmp_path: Path) -> Deployment:
    return deploy(kafka.bootstrap, prefix, tmp_path, shards=2, window=16)


def leave_work_behind(old: Deployment, new: Deployment, early: SchedulerProcess) -> None:
    """Runs of all kinds, a scheduler that loses its shards, a migration that dies at every stage, unread inputs.

    And a scheduler of the new topics that is started too early.
    """
    feeder = file(old, RUNS)
    workers = Workers(old.servers, old.prefix)
    with old.scheduler() as scheduler:
        workers.start()
        clock.wait_until(lambda: workers.reported > RUNS // 4, END_S, what="some runs have ended")
        workers.finish()
        # The scheduler still runs, with its window full of attempts of which nothing is heard any more.
        assert killed(old, new, step=MOVE, done=1) == KILLED
        file(old, WAKING, feeder)  # it finds out when it has something to write
        assert ends(scheduler) == 2
        assert f"has moved to 3 shard(s) under the prefix '{new.prefix}'" in scheduler.log.read_text()
    producer = make_producer(old.servers)
    producer.produce(old.names.requests, UNREADABLE, b"anybody", partition=1)
    assert producer.flush(END_S) == 0
    file(old, MORE, feeder)
    early.start()
    way_out = f"fairstream migrate shards 3 --prefix {old.prefix} --to {new.prefix}"
    clock.wait_until(
        lambda: early.log.read_text().count(way_out) == new.shards, END_S, what="it says what it waits for"
    )
    assert killed(old, new, step=FILL, done=150) == KILLED
    assert killed(old, new, step=SWEEP, done=MORE // 3) == KILLED


def ends(scheduler: SchedulerProcess) -> int | None:
    clock.wait_until(lambda: scheduler.poll() is not None, END_S, what=f"{scheduler.name} has ended")
    return scheduler.poll()


def serve(old: Deployment, new: Deployment, scheduler: SchedulerProcess, sweep: Callable[[], None]) -> None:
    """Serve all there is under the new prefix; what was dispatched before is reported where it was dispatched."""
    fleets = [Workers(each.servers, each.prefix) for each in (old, new)]
    for workers in fleets:
        workers.start()
    scheduler.wait_until_ready(set(range(new.shards)))

    def drained() -> bool:
        sweep()
        return not any(problems(old.gather(), new.gather()))

    try:
        clock.wait_until(drained, END_S, 1.0, what="all is served")
    except TimeoutError:
        assert list(problems(old.gather(), new.gather())) == []
    finally:
        for workers in fleets:
            workers.finish()


def replay_from_the_migration(new: Deployment, shard: int) -> None:
    """No input of the new topics explains what was moved there; the checkpoint of the migration does."""
    found = KafkaRecording(KafkaSettings(servers=new.servers, prefix=new.prefix))
    assert latest_before(found, shard, step=0) is not None
    replay = ShardReplay(found, shard)
    steps = len(list(replay))
    assert replay.divergence is None
    assert steps == len(new.gather().journal[shard]) > 1


def test_two_shards_become_three_under_backlog_however_often_it_is_killed(old: Deployment) -> None:
    new = moved(old, 3, "b")
    scheduler = new.scheduler("new", refused_retry_s=1.0)
    with contextlib.ExitStack() as stack:
        stack.push(scheduler)
        leave_work_behind(old, new, scheduler)
        mover = migration(old, new)
        outcome = mover.run()
        assert (wrong(outcome), outcome.opened, outcome.expired) == ([], True, 0)
        lines = {line.what: line.before for line in outcome.lines}
        assert lines["runs in flight"] > 0
        assert lines["queued runs"] > RUNS // 4
        assert lines["tokens of debt"] > 0
        assert lines["unread requests"] > MORE
        assert sum(outcome.runs) >= lines["queued runs"] + lines["runs in flight"]

        serve(old, new, scheduler, lambda: mover.sweep(outcome))
    mover.prove_inputs(outcome)
    assert wrong(outcome) == []
    assert [seen.value for seen in read_topic(new.servers, new.names.requests)].count(UNREADABLE) == 1
    assert len(taken(old.gather(), new.gather())) == RUNS + WAKING + MORE

    for shard in range(new.shards):
        replay_from_the_migration(new, shard)

    # It has moved: nowhere else can it go, and going there again changes nothing.
    with pytest.raises(ConfigError, match="has moved, or begun to, to 3 shard"):
        migration(old, moved(old, 4, "d")).run()
    again = migration(old, new).run()
    assert (wrong(again), again.opened, again.copied) == ([], True, 0)

    shrunk = moved(old, 1, "c")
    fewer = migration(new, shrunk)
    before = fewer.look()
    assert (wrong(before), before.opened) == ([], False)
    after = fewer.run()
    assert (wrong(after), after.opened, after.to_shards) == ([], True, 1)
    assert {line.what: line.after for line in after.lines}["ended ids remembered"] == RUNS + WAKING + MORE
