"""A whole deployment under faults between any two effects: sound for every seed, and builds that are wrong are found.

`make simulate` has the long form. A seed that fails here is run again by `fairstream simulate faults --seed SEED`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from hashlib import sha256

import pytest

from streams.app.in_memory import load
from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ShardReplay
from streams.audit.verify import verify
from streams.core import counts
from streams.simulate.faulty.chances import KINDS, USUAL
from streams.simulate.faulty.log import Log
from streams.simulate.faulty.world import Outcome, Setting, simulate
from streams.wire import topic_names
from tests.integration.arithmetic import Evidence, assemble, problems, problems_when_drained
from tests.integration.topics import Seen
from tests.simulation.faulty_builds import builds

SEEDS = range(6)
SHARDS = Setting().shards
TOPICS = ("requests", "completions", "dispatch", "rejected", "journal", "state")
# What a run of the simulation must have gone through, beside its faults, to have looked into the corners.
LIVED_THROUGH = (
    counts.SUCCEEDED,
    counts.FAILED,
    counts.RETRIED,
    counts.RETURNED,
    counts.LOST,
    counts.LATE,
    counts.CANCELLED,
    counts.REVOKED,
    counts.EXPIRED,
    counts.DROPPED,
    counts.REFUSED,
    counts.UNREPORTED,
    "forwarded",
    "skipped",
    "unreadable",
)


@cache
def simulated(seed: int) -> tuple[Outcome, Log]:
    return simulate(seed, load)


def read(log: Log, topic: str) -> list[Seen]:
    return [
        Seen(shard, each.offset, each.timestamp, each.key, each.value, each.headers)
        for shard in range(SHARDS)
        for each in log.read((topic, shard), 0)[0]
    ]


def evidence(log: Log) -> Evidence:
    return assemble(topic_names(""), SHARDS, **{topic: read(log, topic) for topic in TOPICS})


def recording(log: Log) -> MemoryRecording:
    places = [("policy", 0), *((topic, shard) for topic in TOPICS for shard in range(SHARDS))]
    return MemoryRecording("", SHARDS, {place: [Rec(*each) for each in log.read(place, 0)[0]] for place in places})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deployment_is_sound_whatever_befalls_it(seed: int) -> None:
    outcome, log = simulated(seed)
    assert outcome.problem is None, f"seed {seed}: {outcome.problem}"
    assert outcome.steps > 200
    assert outcome.runs > 100
    # The proof of the integration tests, which shares nothing with the witness but the codecs.
    found = evidence(log)
    assert [*problems(found), *problems_when_drained(found)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_an_audit_finds_nothing_and_replays_every_step(seed: int) -> None:
    outcome, log = simulated(seed)
    recorded = recording(log)
    assert verify(recorded).problems == []
    steps = 0
    for shard in range(SHARDS):
        replay = ShardReplay(recorded, shard)
        steps += sum(1 for _ in replay)
        assert replay.divergence is None, f"seed {seed}: {replay.divergence}"
    assert steps == outcome.steps


def test_every_kind_of_fault_fires() -> None:
    fired: Counter[str] = Counter()
    for seed in SEEDS:
        fired.update(simulated(seed)[0].fired)
    assert [kind for kind in KINDS if not fired[kind]] == []


def test_everything_that_a_run_may_go_through_is_gone_through() -> None:
    counted: Counter[str] = Counter()
    for seed in SEEDS:
        counted.update(simulated(seed)[0].counts)
    assert [name for name in LIVED_THROUGH if not counted[name]] == []


def test_the_gap_is_measured_and_within_its_bound() -> None:
    assert all(0 < simulated(seed)[0].widest_gap_ppm <= 1_000_000 for seed in SEEDS)


def test_without_faults_nothing_is_fenced_or_loaded_again() -> None:
    outcome, _ = simulate(1, load, Setting(ticks=30, skew_ms=0, rates=dict.fromkeys(USUAL, 0.0)))
    assert outcome.problem is None
    assert outcome.fired == {}
    assert outcome.reigns == SHARDS


@pytest.mark.parametrize("shards", [1, 7])
def test_any_number_of_shards(shards: int) -> None:
    outcome, _ = simulate(2, load, Setting(shards=shards, processes=2, ticks=40))
    assert outcome.problem is None


@pytest.mark.parametrize("build", builds())
def test_a_wrong_build_is_found_by_every_seed(build: str) -> None:
    for seed in SEEDS:
        make, make_writer = builds()[build]
        outcome, _ = simulate(seed, make, make_writer=make_writer)
        assert outcome.problem is not None, f"seed {seed}: a scheduler with {build} was found sound"


def digest(seed: int) -> str:
    """What one run leaves behind, as one text."""
    outcome, log = simulate(seed, load, Setting(ticks=30))
    return sha256(repr((outcome, [read(log, topic) for topic in TOPICS])).encode()).hexdigest()


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    """A process of its own has other hashes of texts: an order that depends on them would show."""
    program = "from tests.simulation.test_faulty_deployment import digest; print(digest(3))"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    assert done.stdout.strip() == digest(3)
