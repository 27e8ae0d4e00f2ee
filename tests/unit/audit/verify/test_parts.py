"""The parts that a recording seldom comes to: forged with a purpose, and small enough to be seen through."""

from __future__ import annotations

from functools import cache

import pytest

from streams.audit.checkpoints import latest_before
from streams.audit.recording import MemoryRecording, Rec
from streams.audit.verify import MOST, verify
from streams.audit.verify.findings import Findings, Span
from streams.audit.verify.horizon import Horizon
from streams.audit.verify.matching import Matching
from streams.core.gap import Gap
from streams.errors import NotReplayable
from streams.wire import FORWARDED
from tests.checkpointed import ends_of_steps, take
from tests.recorded import record
from tests.unit.audit.verify.tampered import SHARD, Document, check, first_of, recording
from tests.unit.audit.verify.tampering import altered, dropped, mended, records


@cache
def longer() -> MemoryRecording:
    return record(3, drain=False)


def copy_of_another_shard() -> tuple[int, int]:
    """Shard and index of a request that was forwarded."""
    for shard in range(2):
        for index, each in enumerate(records(longer(), "requests", shard)):
            if index and any(name == FORWARDED for name, _ in each.headers):
                return shard, index
    raise AssertionError("nothing was forwarded")


def test_a_copy_that_is_not_what_was_forwarded_is_found() -> None:
    def change(document: Document) -> None:
        document["payload"] = {"number": -1}

    shard, index = copy_of_another_shard()
    report = check(altered(longer(), "requests", shard, index, change))
    found = [each for each in report.problems if each.check == "forwards"]
    assert [(each.shard, each.offset) for each in found] == [
        (shard, records(longer(), "requests", shard)[index].offset)
    ]


def test_a_copy_that_is_not_there_is_found() -> None:
    shard, index = copy_of_another_shard()
    report = check(dropped(longer(), "requests", shard, index))
    assert any(each.check == "forwards" and each.shard != shard for each in report.problems)


def test_a_record_of_the_journal_that_cannot_be_read_is_found() -> None:
    own = records(recording(), "journal", SHARD)
    own[20] = own[20]._replace(value=b"{")
    problem = first_of(check(recording().replaced({("journal", SHARD): own})))
    assert (problem.check, problem.shard, problem.step, problem.offset) == ("chain", SHARD, 21, own[20].offset)


def test_a_record_of_another_shard_s_journal_is_found() -> None:
    own = records(recording(), "journal", SHARD)
    own[20] = own[20]._replace(key=b"1")
    problem = first_of(check(recording().replaced({("journal", SHARD): own})))
    assert (problem.check, problem.step, problem.offset) == ("chain", 21, own[20].offset)


@pytest.mark.parametrize("topic", ["dispatch", "rejected"])
def test_what_cannot_be_read_is_named_with_its_place(topic: str) -> None:
    own = records(recording(), topic, 1)
    own[4] = own[4]._replace(value=b"{")
    report = check(recording().replaced({(topic, 1): own}))
    found = [each for each in report.problems if "cannot be read" in each.sentence]
    assert [(each.shard, each.topic, each.partition, each.offset) for each in found] == [
        (None, topic, 1, own[4].offset)
    ]


def test_a_policy_that_the_topic_has_no_more_is_taken_from_the_journal() -> None:
    report = check(recording().replaced({("policy", 0): records(recording(), "policy", 0)[-1:]}))
    assert report.problems == []
    assert report.looked_at["policies that the policy topic has no more"] > 0


def test_a_policy_that_was_passed_over_is_found() -> None:
    """It was stated, others after it were applied, and it was not."""
    stated = records(recording(), "policy", 0)
    missed = stated[1]._replace(offset=stated[0].offset)
    report = check(recording().replaced({("policy", 0): [missed, *stated[1:]]}))
    assert first_of(report).check == "policies"


def test_a_topic_reaches_back_as_far_as_its_partitions() -> None:
    kept = MemoryRecording(
        topics={("dispatch", 0): [Rec(7, 100_000, None, None)], ("dispatch", 1): [Rec(0, 1, None, None)]}
    )
    horizon = Horizon(kept, "dispatch")
    assert horizon.may_hide(0, 5, 100_000)
    assert not horizon.may_hide(0, 5, 100_001)
    assert not horizon.hides(0), "the other partition reaches back to the beginning"


def test_what_is_hidden_stood_before_all_that_its_shard_has_left_there() -> None:
    horizon = Horizon(MemoryRecording(topics={("dispatch", 0): [Rec(7, 1 << 50, None, None)]}), "dispatch")
    horizon.note(0, 0, 4)
    horizon.note(0, 0, 6)
    assert horizon.may_hide(0, 3, 1_000)
    assert not horizon.may_hide(0, 5, 1_000), "an earlier one is there"
    assert horizon.may_hide(1, 5, 1_000), "another shard's are no sign"


def test_a_replay_measures_the_gap_of_all_tenants() -> None:
    report = verify(recording(), interval_ms=1_000, replay=True)
    assert report.problems == []
    assert report.looked_at["gaps measured in a replay"] > 20


def test_a_replay_that_does_not_come_out_as_recorded_is_a_problem() -> None:
    def change(document: Document) -> None:
        document["counts"]["succeeded"] = 77

    report = verify(mended(altered(recording(), "journal", SHARD, 30, change), SHARD), replay=True)
    assert [(each.check, each.shard, each.step) for each in report.problems] == [("bound", SHARD, 31)]


def without_the_first_steps() -> MemoryRecording:
    """One shard begins after a checkpoint, as in a deployment that is older than what Kafka keeps of its inputs."""
    step = 20
    kept = take(recording(), SHARD, ends_of_steps(recording(), SHARD)[step - 1])
    start = latest_before(kept, SHARD)
    assert start is not None
    assert start.positions is not None
    begins = {topic: last + 1 for topic, last in start.positions.applied.items()}
    begins["journal"] = records(kept, "journal", SHARD)[step - 1].offset + 1
    return kept.replaced({(topic, SHARD): [*kept.read(topic, SHARD, first)] for topic, first in begins.items()})


def test_where_the_beginning_is_gone_a_replay_measures_from_a_checkpoint_on() -> None:
    report = verify(without_the_first_steps(), interval_ms=1_000, replay=True)
    assert report.problems == []
    assert report.looked_at["shards measured from a checkpoint on"] == 1


def test_with_neither_beginning_nor_checkpoint_nothing_can_be_measured() -> None:
    with pytest.raises(NotReplayable, match="no checkpoint"):
        verify(without_the_first_steps().replaced({("checkpoints", SHARD): []}), replay=True)


def test_a_checkpoint_that_is_not_what_was_written_is_a_problem_and_not_the_end() -> None:
    own = records(without_the_first_steps(), "checkpoints", SHARD)
    own[1] = own[1]._replace(value=(own[1].value or b"").replace(b"t1", b"t2"))
    report = verify(without_the_first_steps().replaced({("checkpoints", SHARD): own}), replay=True)
    assert [each.check for each in report.problems] == ["checkpoints", "bound"]


def test_a_gap_above_its_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that measures what no core may come to."""
    monkeypatch.setattr("streams.core.snapshot.gap.widest", lambda _flows, _quantum: Gap(11, 10))
    report = verify(recording(), interval_ms=1_000, replay=True)
    assert "the widest gap is 11 tokens per weight, its bound 10" in report.problems[0].sentence


def test_the_first_meets_the_first() -> None:
    pairs: Matching[str, str] = Matching()
    assert pairs.say("k", "a") is None
    assert pairs.say("k", "b") is None
    assert pairs.do("k", "x") == "a"
    assert [*pairs.only_said()] == ["b"]
    assert pairs.do("other", "y") is None
    assert [*pairs.only_done()] == ["y"]


def test_of_one_kind_the_first_are_kept_and_all_are_counted() -> None:
    findings = Findings()
    for number in range(MOST + 5):
        findings.add("steps", 0, f"number {number}")
    findings.add("steps", 1, "of another shard")
    assert len(findings.problems) == MOST + 1
    assert findings.total == MOST + 6


def test_steps_beyond_the_journal_are_known_only_at_rest() -> None:
    assert 7 in Span(3, None)
    assert 7 not in Span(3, 6)
    assert 2 not in Span(3, None)


def test_nothing_at_all_is_in_order() -> None:
    topics: dict[tuple[str, int], list[Rec]] = {(topic, 0): [] for topic in ("dispatch", "rejected", "policy")}
    assert verify(MemoryRecording(shards=2, topics=topics)).problems == []
