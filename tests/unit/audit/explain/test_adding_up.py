"""On recordings with everything that goes wrong: each run is explained, and its parts add up."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache

import orjson
import pytest

from streams.app.in_memory import load
from streams.audit.explain import document, explain, parts, tell
from streams.audit.explain.life import Answer, Life
from streams.audit.explain.requests import Asked, find
from streams.audit.explain.watching import Watcher
from streams.audit.recording import MemoryRecording
from streams.audit.replay import ShardReplay
from streams.core.inputs import Submit
from streams.errors import BadRecord, ConfigError
from streams.simulate.faulty.world import simulate
from streams.wire import decode_journal, decode_request
from tests.recorded import record
from tests.simulation.test_faulty_deployment import recording as recording_of

UNDRAINED = 3
FAULTY = 4  # a deployment with faults between any two effects
SEEDS = (1, 2, UNDRAINED, FAULTY)


@cache
def recording(seed: int) -> MemoryRecording:
    if seed == FAULTY:
        return recording_of(simulate(seed, load)[1])
    return record(seed, ticks=60, drain=seed != UNDRAINED)


@cache
def runs(seed: int) -> list[list[Asked]]:
    """Every run that a readable request names, with its requests."""
    names = set()
    for shard in range(recording(seed).shards):
        for each in recording(seed).read("requests", shard):
            value = each.value or b""
            with suppress(BadRecord):
                given = decode_request(each.key, value, each.offset, each.timestamp)
                if each.readable and isinstance(given, Submit):
                    names.add((given.run_id, given.tenant))
    found = []
    for name in sorted(names):
        with suppress(ConfigError):  # it stood on another shard's partition when the record ended
            found.append(find(recording(seed), *name))
    return found


@cache
def answers(seed: int) -> list[Answer]:
    """All runs are watched in one replay of each shard."""
    found: list[Answer] = []
    for shard in range(recording(seed).shards):
        times = {each.offset: each.timestamp for each in recording(seed).read("completions", shard)}
        watchers = [Watcher(asked, times.get) for asked in runs(seed) if asked[0].shard == shard]
        replay = ShardReplay(recording(seed), shard)
        for step in replay:
            for watcher in watchers:
                watcher.see(step)
        assert replay.divergence is None
        for watcher in watchers:
            watcher.finish(step.core)
            found += watcher.answers
    return found


def lives(seed: int) -> list[Life]:
    return [answer.life for answer in answers(seed) if answer.life is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_parts_add_up_to_the_time_from_its_arrival_to_its_end(seed: int) -> None:
    assert len(lives(seed)) > 60
    for life in lives(seed):
        end_ms = life.ended.at_ms if life.ended is not None else life.seen_ms
        assert sum(life.divided.values()) == end_ms - life.arrived_ms
        assert all(part in parts.PARTS and ms > 0 for part, ms in life.divided.items())
        assert sum(ms for _, by_part in life.phases for ms in by_part.values()) == end_ms - life.arrived_ms


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_told_is_what_the_journal_says(seed: int) -> None:
    entries = [
        decode_journal(each.value)
        for shard in range(recording(seed).shards)
        for each in recording(seed).read("journal", shard)
    ]
    decided = [
        (each.tenant, each.run_id, each.attempt, entry.step, entry.now_ms, each.estimate, each.deficit_before)
        for entry in entries
        for each in entry.decisions
    ]
    told = [
        (*_name(life), attempt.number, *attempt.dispatched, attempt.estimate, attempt.deficit_before)
        for life in lives(seed)
        for attempt in life.attempts
    ]
    assert sorted(told) == sorted(decided)
    settled = [
        (each.tenant, each.run_id, each.attempt, each.outcome, each.actual)
        for entry in entries
        for each in entry.settlements
    ]
    ended = [
        (*_name(life), attempt.number, attempt.outcome, attempt.actual)
        for life in lives(seed)
        for attempt in life.attempts
        if attempt.outcome is not None
    ]
    assert set(ended) <= set(settled)
    amended = sum(attempt.amended is not None for life in lives(seed) for attempt in life.attempts)
    assert len(settled) == len(ended) + amended


def _name(life: Life) -> tuple[str, str]:
    return life.asked.submit.tenant, life.asked.submit.run_id


@pytest.mark.parametrize("seed", SEEDS)
def test_each_can_be_told_and_written_down(seed: int) -> None:
    for asked in runs(seed)[::9]:
        submit = asked[0].submit
        explained = explain(recording(seed), submit.run_id, tenant=submit.tenant)
        assert explained.divergence is None
        assert all(sentence.endswith(".") for sentence in tell(explained))
        assert orjson.loads(orjson.dumps(document(explained)))["run_id"] == submit.run_id


def test_the_recordings_hold_what_can_happen() -> None:
    """Else the tests above would show little."""
    told = [life for seed in SEEDS for life in lives(seed)]
    assert {life.end for life in told} >= {"succeeded", "failed", "cancelled", "expired", None}
    seen: Counter[str] = Counter()
    for life in told:
        seen.update(life.divided)
    assert set(parts.PARTS) - set(seen) <= {"cap_tokens", "overdue", "visit", "window_tokens"}
    assert max(len(life.attempts) for life in told) > 1
    assert any(answer.refusal is not None for seed in SEEDS for answer in answers(seed))
    assert any(len(asked) > 1 for seed in SEEDS for asked in runs(seed))
