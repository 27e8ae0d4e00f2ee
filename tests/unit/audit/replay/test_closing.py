"""A journal that ends too early is no journal that ended earlier: the positions row says how it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ReplayOptions, ShardOutcome, replay_shard
from streams.rows import POSITIONS, encode_key
from tests.checkpointed import ends_of_steps, take
from tests.unit.audit.replay.played import SHARD, entries, recorded
from tests.unit.audit.verify.tampering import altered, dropped, records

JOURNAL = "journal", SHARD
KEY = encode_key(SHARD, (POSITIONS,))


def replayed(recording: MemoryRecording, options: ReplayOptions | None = None) -> ShardOutcome:
    return replay_shard(recording, SHARD, options or ReplayOptions(), lambda _: None)


@pytest.mark.parametrize("gone", [1, 2, 30, 10_000])
def test_the_last_steps_are_gone(gone: int) -> None:
    left = records(recorded(), *JOURNAL)[:-gone]
    outcome = replayed(recorded().replaced({JOURNAL: left}))
    assert outcome.steps == len(left)
    assert outcome.divergence is not None
    assert (outcome.divergence.field, outcome.divergence.step) == ("journal", len(left) + 1)


@pytest.mark.parametrize("gone", [1, 10_000])
def test_they_are_missed_after_a_checkpoint_too(gone: int) -> None:
    recording = take(recorded(), SHARD, ends_of_steps(recorded(), SHARD)[19])
    options = ReplayOptions(from_checkpoint=True)
    assert replayed(recording, options).equal
    own = records(recording, *JOURNAL)
    outcome = replayed(recording.replaced({JOURNAL: [*own[:20], *own[20:-gone]]}), options)
    assert outcome.divergence is not None
    assert outcome.divergence.field == "journal"


def test_the_last_step_is_another_in_what_no_decision_rests_on() -> None:
    index = len(entries(recorded())) - 1
    given = altered(recorded(), *JOURNAL, index, lambda step: step.update(note="it was not there"))
    found = replayed(given).divergence
    assert found is not None
    assert found.field == "journal"


@pytest.mark.parametrize("value", [None, b"", b"[", b'["shard"]'])
def test_the_row_is_gone(value: bytes | None) -> None:
    state = records(recorded(), "state", SHARD)
    found = replayed(
        recorded().replaced(
            {("state", SHARD): [each._replace(value=value) if each.key == KEY else each for each in state]}
        )
    ).divergence
    assert found is not None
    assert (found.field, found.replayed) == ("journal", "there is none")


class Emptied(MemoryRecording):
    """Its journal has been deleted by age, since the shard has had nothing to do for so long."""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return (900, 900) if topic == "journal" else super().bounds(topic, partition)


def test_a_journal_that_is_all_deleted_is_no_proof() -> None:
    outcome = replayed(Emptied(shards=2, topics={**recorded().topics, JOURNAL: []}))
    assert outcome.divergence is None
    assert "have been deleted from the journal" in str(outcome.refused)


def test_an_export_that_ends_earlier_has_no_state_to_close_it() -> None:
    topics: dict[tuple[str, int], list[Rec]] = {
        place: own for place, own in recorded().topics.items() if place[0] != "state"
    }
    assert replayed(dropped(MemoryRecording(shards=2, topics=topics), *JOURNAL, -1)).equal


def test_up_to_a_time_it_is_not_asked_for() -> None:
    its = entries(recorded())
    outcome = replayed(recorded(), ReplayOptions(until_ms=its[30].now_ms))
    assert outcome.equal
    assert 30 < outcome.steps < len(its)


class Lagging(MemoryRecording):
    """The end of the last transaction shows in the journal a moment later than in the state."""

    asked = 0

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        own = [*super().read(topic, partition, start, stop)]
        self.asked += topic == "journal"
        return iter(own[:-1] if topic == "journal" and self.asked == 1 else own)


def test_what_is_still_to_be_seen_is_not_missing() -> None:
    outcome = replayed(Lagging(shards=2, topics=recorded().topics))
    assert outcome.equal
    assert outcome.steps == len(entries(recorded())) - 1
