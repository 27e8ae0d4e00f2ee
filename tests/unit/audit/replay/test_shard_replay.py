"""A recorded shard comes out again, and what was altered does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.replay import ShardReplay
from streams.core import reasons
from streams.core.version import VERSION
from streams.errors import NotReplayable
from streams.rows import POSITIONS, PositionsRecord, decode, encode_key
from streams.wire import JournalEntry
from tests.unit.audit.replay.played import SHARD, diverges, entries, first_step, recorded
from tests.unit.audit.verify.narrow import narrow
from tests.unit.audit.verify.tampering import altered, doubled, dropped, mended, swapped

Step = dict[str, Any]


@pytest.mark.parametrize("seed", range(4))
def test_every_step_of_every_shard_comes_out_as_recorded(seed: int) -> None:
    recording, seen = recorded(seed), Counter[str]()
    for shard in range(recording.shards):
        replay = ShardReplay(recording, shard)
        steps = [(step.entry, len(step.inputs), step.core.now_ms, [*step.problems]) for step in replay]
        assert replay.divergence is None
        assert [entry for entry, *_ in steps] == entries(recording, shard)
        assert all(not problems and core_ms == entry.now_ms for entry, _, core_ms, problems in steps)
        final = [each for each in recording.read("state", shard) if each.key == encode_key(shard, (POSITIONS,))][-1]
        positions = decode((POSITIONS,), final.value or b"")
        assert isinstance(positions, PositionsRecord)
        assert steps[-1][0].state == positions.state
        seen.update({"inputs": sum(number for _, number, *_ in steps)})
        for entry, *_ in steps:
            seen.update(kind for kind in _KINDS if getattr(entry, kind))
    assert all(seen[kind] for kind in [*_KINDS, "inputs"]), f"the recording has everything that a step can have: {seen}"


def test_what_is_too_large_for_the_topics_is_refused_again() -> None:
    """At the door, of which the core knows nothing, and of what was let in before the topics took less."""
    recording = narrow()
    told = entries(recording)
    assert any(each.reason == reasons.TOO_LARGE for entry in told for each in entry.rejections)
    assert any(entry.undeliverable for entry in told)
    replay = ShardReplay(recording, SHARD)
    assert [step.entry for step in replay] == told
    assert replay.divergence is None


_KINDS = ("takeover", "decisions", "settlements", "rejections", "policies", "revokes", "unread")


def column(name: str, field: str, change: Callable[[Any], Any]) -> Callable[[Step], None]:
    def edit(step: Step) -> None:
        step[name][field][0] = change(step[name][field][0])

    return edit


def cut(name: str) -> Callable[[Step], None]:
    """Take out the last row."""

    def edit(step: Step) -> None:
        for values in step[name].values():
            values.pop()

    return edit


def field(name: str, change: Callable[[Any], Any]) -> Callable[[Step], None]:
    return lambda step: step.update({name: change(step[name])})


def heavier(step: Step) -> None:
    [change] = step["policies"]
    change["policy"]["tenants"]["t0"]["weight"] = 9


ALTERATIONS: dict[str, tuple[Callable[[JournalEntry], object], Callable[[Step], None], str]] = {
    "estimate": (lambda e: e.decisions, column("decisions", "estimate", lambda n: n + 1), "decisions[0].estimate"),
    "deficit": (lambda e: e.decisions, column("decisions", "deficit", lambda n: n - 1), "decisions[0].deficit_before"),
    "who was served": (lambda e: e.decisions, column("decisions", "tenant", lambda _: "t9"), "decisions[0].tenant"),
    "class": (lambda e: e.decisions, column("decisions", "class", lambda _: "vip"), "decisions[0].class"),
    "a decision less": (lambda e: len(e.decisions) == 1, cut("decisions"), "decisions[0]"),
    "actual": (lambda e: e.settlements, column("settlements", "actual", lambda n: n + 1), "settlements[0].actual"),
    "outcome": (lambda e: e.settlements, column("settlements", "outcome", lambda _: "won"), "settlements[0].outcome"),
    "a settlement less": (lambda e: len(e.settlements) == 2, cut("settlements"), "settlements[1]"),
    "reason": (lambda e: e.rejections, column("rejections", "reason", lambda _: "invalid"), "rejections[0].reason"),
    "revoke": (lambda e: e.revokes, column("revokes", "run_id", lambda _: "r0"), "revokes[0].run_id"),
    "counts": (
        lambda e: e.counts.get("accepted"),
        lambda step: step["counts"].update(accepted=step["counts"]["accepted"] + 1),
        "counts.accepted",
    ),
    "state": (lambda e: e.step == 30, field("state", lambda text: "0" * len(text)), "state"),
    "epoch": (lambda e: not e.takeover, field("epoch", lambda n: n + 1), "epoch"),
    "policy version": (lambda e: e.step == 9, field("policy_version", lambda n: n + 1), "policy_version"),
    "shard": (lambda e: e.step == 5, field("shard", lambda n: n + 1), "shard"),
    "the version of the step": (lambda e: e.step == 7, field("step", lambda n: n + 1), "step"),
    "not an entry": (lambda e: e.step == 7, field("inputs", lambda _: "all"), "inputs"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_what_is_altered_is_found_in_its_step_with_both_sides(name: str) -> None:
    wanted, change, where = ALTERATIONS[name]
    recording = recorded()
    step = first_step(recording, wanted)
    for insider in (False, True):  # who makes the chain right again is found at the same place
        forged = altered(recording, "journal", SHARD, step - 1, change)
        found = diverges(mended(forged, SHARD) if insider else forged)
        assert (found.step, found.field) == (step, where)
        assert found.recorded != found.replayed
        assert f"shard {SHARD}, step {step} (journal offset {found.offset}), {where}: " in str(found)


def test_an_altered_weight_is_found_where_it_first_matters_at_the_latest() -> None:
    recording = recorded()
    step = first_step(recording, lambda entry: len(entry.policies) == 1)
    found = diverges(mended(altered(recording, "journal", SHARD, step - 1, heavier), SHARD))
    assert (found.step, found.field) == (step, "state")  # the policy is a row


def test_an_earlier_or_later_time_is_found() -> None:
    recording = recorded()
    step = first_step(recording, lambda entry: entry.decisions and entry.step > 1)
    later = mended(altered(recording, "journal", SHARD, step - 1, field("now_ms", lambda ms: ms + 1)), SHARD)
    assert diverges(later).step == step
    before = mended(altered(recording, "journal", SHARD, step - 1, field("now_ms", lambda _: 1)), SHARD)
    assert (diverges(before).step, diverges(before).field) == (step, "now_ms")


@pytest.mark.parametrize(
    ("tamper", "field", "why"),
    [
        (dropped, "step", "records of the journal are missing"),
        (doubled, "step", "the record stands here again"),
        (swapped, "step", "records of the journal are missing"),
    ],
)
def test_a_journal_record_dropped_doubled_or_swapped(
    tamper: Callable[[MemoryRecording, str, int, int], MemoryRecording], field: str, why: str
) -> None:
    index = 20
    forged = tamper(recorded(), "journal", SHARD, index)
    for each in (forged, mended(forged, SHARD)):
        found = diverges(each)
        assert (found.step, found.field, found.note) == (index + 1 + (tamper is doubled), field, why)


def test_a_record_altered_where_nothing_compares_it_breaks_the_chain_behind_it() -> None:
    recording = recorded()
    forged = altered(recording, "journal", SHARD, 20, lambda step: step.update(remark="by hand"))
    found = diverges(forged)
    assert (found.step, found.field) == (22, "previous")
    assert "altered or exchanged" in found.note


def index_of(recording: MemoryRecording, topic: str, offset: int) -> int:
    return next(index for index, each in enumerate(recording.read(topic, SHARD)) if each.offset == offset)


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        ("requests", lambda request: request.update(payload="another")),
        ("requests", lambda request: request.update(workflow="another")),
        ("requests", lambda request: request.update(tenant="t7", run_id="none")),
        ("completions", lambda report: report.update(tokens=4_444)),
        ("completions", lambda report: report.update(status="failed", retryable=False)),
    ],
)
def test_an_altered_input_is_found_where_it_was_taken_in(topic: str, change: Callable[[Step], None]) -> None:
    recording = recorded()
    step = first_step(
        recording, lambda entry: entry.counts.get("accepted") if topic == "requests" else len(entry.settlements) == 1
    )
    last = next(each.last for each in entries(recording)[step - 1].inputs if each.topic == topic)
    found = diverges(altered(recording, topic, SHARD, index_of(recording, topic, last), change))
    assert found.step == step


@pytest.mark.parametrize("topic", ["requests", "completions"])
def test_an_input_that_was_taken_out_is_missed(topic: str) -> None:
    recording = recorded()
    step = first_step(recording, lambda entry: any(each.topic == topic for each in entry.inputs) and entry.step > 40)
    last = next(each.last for each in entries(recording)[step - 1].inputs if each.topic == topic)
    found = diverges(dropped(recording, topic, SHARD, index_of(recording, topic, last)))
    assert (found.step, found.field, found.note) == (step, f"inputs.{topic}", "an input of the step is not there")


def test_inputs_that_do_not_follow_those_of_the_step_before() -> None:
    recording = recorded()

    def is_plain(entry: JournalEntry) -> bool:
        return not entry.takeover and any(each.topic == "requests" and each.first > 5 for each in entry.inputs)

    def skip(step: Step) -> None:
        next(each for each in step["inputs"] if each["topic"] == "requests")["first"] -= 1

    step = first_step(recording, is_plain)
    found = diverges(mended(altered(recording, "journal", SHARD, step - 1, skip), SHARD))
    assert (found.step, found.field) == (step, "inputs.requests")
    assert "follow those of the step before" in found.note


def last_step_of(recording: MemoryRecording) -> tuple[int, str]:
    """How far a replay comes that cannot go on, and why."""
    steps: list[int] = []
    with pytest.raises(NotReplayable) as stopped:
        steps.extend(each.entry.step for each in ShardReplay(recording, SHARD))
    return max(steps, default=0), str(stopped.value)


def test_another_version_of_the_core_is_not_replayed_but_named() -> None:
    newer = altered(recorded(), "journal", SHARD, 11, lambda step: step.update(core=VERSION + 1))
    step, why = last_step_of(mended(newer, SHARD))
    assert step == 11
    assert f"shard 0, step 12: decided by version {VERSION + 1} of the core, and this is version {VERSION}" in why


def test_nor_a_journal_of_before_there_was_one() -> None:
    def older(step: Step) -> None:
        for name in ("core", "state", "previous"):
            del step[name]

    step, why = last_step_of(altered(recorded(), "journal", SHARD, 0, older))
    assert step == 0
    assert "did not yet write down all that a replay needs" in why


def test_a_journal_that_begins_later_says_where_and_what_helps() -> None:
    recording = recorded()
    rest = [*recording.read("journal", SHARD)][15:]
    step, why = last_step_of(recording.replaced({("journal", SHARD): rest}))
    assert step == 0
    assert "the journal begins with step 16, the replay with step 1" in why
    assert "--from-checkpoint" in why


@pytest.mark.parametrize("topic", ["requests", "completions"])
def test_inputs_that_were_deleted_are_told_from_such_as_are_missing(topic: str) -> None:
    recording = recorded()
    kept = [*recording.read(topic, SHARD)][10:]
    step, why = last_step_of(recording.replaced({(topic, SHARD): kept}))
    of_first = next(each for each in entries(recording)[step].inputs if each.topic == topic)
    assert of_first.first < kept[0].offset
    assert f"step {step + 1}: it took in offsets {of_first.first} to {of_first.last} of the {topic}" in why
    assert f"those before {kept[0].offset} have been deleted" in why


def test_a_replay_ends_where_it_is_told_to() -> None:
    recording = recorded()
    middle = entries(recording)[30].now_ms
    replay = ShardReplay(recording, SHARD, until_ms=middle)
    assert [step.entry for step in replay][-1].now_ms <= middle
    assert replay.divergence is None
    assert [step.entry for step in ShardReplay(recording, SHARD, until_ms=0)] == []


def test_a_step_is_shown_in_json_too() -> None:
    """Both sides of a divergence are plain values."""
    found = diverges(altered(recorded(), "journal", SHARD, 29, field("state", lambda _: "")))
    assert orjson.loads(orjson.dumps(found._asdict()))["step"] == 30
