"""Of a recording that nobody has touched nothing is said, whatever its rules, and however much is deleted by age."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.core.policy import Estimates, Limits, Memory, Policy, TenantRules, Window
from tests.recorded import BEGIN_MS, Recorder, first_policy, record
from tests.unit.audit.verify.silent import Silent

FEW = settings(max_examples=max(10, (settings.default or settings()).max_examples // 5))
BY_AGE = ("requests", "completions", "dispatch", "rejected", "journal")  # what Kafka deletes so, each at its own pace


@FEW
@given(
    seed=st.integers(0, 10_000),
    shards=st.integers(1, 3),
    ticks=st.integers(20, 60),  # so that the last of the policies is stated, under which nobody is paused
    interval_ms=st.sampled_from((300, 1_000, 60_000)),
    drain=st.booleans(),
)
def test_nothing_is_wrong_with_what_nobody_has_touched(
    seed: int, shards: int, ticks: int, interval_ms: int, drain: bool
) -> None:
    given_ = record(seed, shards=shards, ticks=ticks, drain=drain)
    report = verify(given_, interval_ms=interval_ms)
    assert report.problems == []
    assert report.looked_at["steps"] == sum(len(given_.topics["journal", shard]) for shard in range(shards))


@FEW
@given(seed=st.integers(0, 10_000), any_rules=st.booleans(), cuts=st.data())
def test_what_was_deleted_by_age_is_not_missed(seed: int, any_rules: bool, cuts: st.DataObject) -> None:
    """The journal reaches back furthest, as it is kept longest."""
    whole = under_any_rules(seed, 6) if any_rules else record(seed, ticks=60, drain=False)
    end_ms = max(each.timestamp for records in whole.topics.values() for each in records)
    moments = cuts.draw(st.lists(st.integers(BEGIN_MS, end_ms), min_size=len(BY_AGE), max_size=len(BY_AGE)))
    moments.sort(reverse=True)
    report = verify(deleted(whole, dict(zip(BY_AGE, moments, strict=True))), interval_ms=1_000)
    assert report.problems == []


@FEW
@given(seed=st.integers(0, 100_000), tenants=st.sampled_from((3, 6, 10)))
def test_nothing_is_wrong_under_any_rules(seed: int, tenants: int) -> None:
    assert verify(under_any_rules(seed, tenants), interval_ms=700).problems == []


def under_any_rules(seed: int, tenants: int) -> MemoryRecording:
    """Caps, groups, pauses, closed doors, tenants removed, backlogs that give way, short memory, late reports."""
    draw = random.Random(seed)
    recorder = draw.choice((Recorder, Silent))(draw, draw.choice((1, 2)), tenants)
    for tick in range(100):
        if tick % 25 == 0:
            recorder.state_policy(any_policy(draw, tenants))
        for _ in range(draw.choice((1, 1, 3))):
            recorder.file()
        if tick % 17 == 0:
            recorder.change_owner()
        recorder.tick()
    return recorder.recording


def deleted(recording: MemoryRecording, before_ms: dict[str, int]) -> MemoryRecording:
    """Without what is older; the last record of a partition stays."""
    left = {}
    for (topic, partition), records in recording.topics.items():
        if topic in before_ms and records:
            kept = [each for each in records if each.timestamp >= before_ms[topic]]
            left[topic, partition] = kept or records[-1:]
    return recording.replaced(left)


def any_policy(draw: random.Random, tenants: int) -> Policy:
    def rules() -> TenantRules:
        return TenantRules(
            weight=draw.randint(1, 6),
            group=draw.choice((None, None, None, "g")),
            max_runs_in_flight=draw.choice((None, None, 1, 2)),
            max_tokens_in_flight=draw.choice((None, None, None, 800)),
            max_queued_runs=draw.choice((None, None, 3)),
            max_queued_tokens=draw.choice((None, None, 3_000)),
            paused=draw.random() < 0.08,
        )

    return replace(
        first_policy(tenants),
        tenants={f"t{number}": rules() for number in range(tenants) if draw.random() < 0.9},
        groups={"g": draw.randint(1, 4)},
        closed=draw.random() < 0.3,
        on_removal=draw.choice(("serve", "reject")),
        quantum=draw.choice((300, 500, 1_000)),
        between_classes=draw.choice(("strict", "shares")),
        window=Window(runs=draw.choice((None, 4, 12)), tokens=draw.choice((3_000, 20_000))),
        limits=Limits(
            max_queued_runs=draw.choice((None, 8, 25)),
            max_queued_bytes=draw.choice((None, 16, 400, 4_000)),
            max_run_tokens=draw.choice((None, 1_500)),
            overload=draw.choice(("refuse", "drop_longest")),
        ),
        estimates=Estimates(source=draw.choice(("history", "hint", "max")), min_charge=draw.choice((1, 200))),
        memory=Memory(
            ended_ms=draw.choice((300, 3_600_000)),
            ended_runs=draw.choice((3, 200_000, 200_000)),
            flows=draw.choice((4, 1_000_000, 1_000_000)),
        ),
    )
