"""How a chain ends: with the record that the positions row names, and not without that row."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streams.audit.checkpoints import TOPIC
from streams.audit.recording import MemoryRecording
from streams.errors import ConfigError
from streams.rows import POSITIONS, encode_key
from streams.rows.checkpoint import Foot, decode_part, encode_part
from tests.checkpointed import append, take
from tests.unit.audit.verify.tampered import SHARD, check, first_of, journal, recording
from tests.unit.audit.verify.tampering import documents, records

LAST = "journal", SHARD


def without(topic: str) -> MemoryRecording:
    topics = {place: own for place, own in recording().topics.items() if place[0] != topic}
    return replace(recording(), topics=topics)


def without_outputs() -> MemoryRecording:
    """All that the shard has written but its rows is gone."""
    changes = {LAST: records(recording(), *LAST)[:0]}
    for topic in ("dispatch", "rejected"):
        for partition in range(2):
            own = zip(documents(recording(), topic, partition), records(recording(), topic, partition), strict=True)
            changes[topic, partition] = [each for said, each in own if said["shard"] != SHARD]
    return recording().replaced(changes)


def test_a_journal_that_is_all_gone_is_missed() -> None:
    problem = first_of(check(without_outputs()))
    assert (problem.check, problem.shard, problem.topic) == ("chain", SHARD, "journal")


@pytest.mark.parametrize("value", [None, b"["])
def test_a_positions_row_that_is_gone_is_missed(value: bytes | None) -> None:
    key = encode_key(SHARD, (POSITIONS,))
    state = [each._replace(value=value) if each.key == key else each for each in records(recording(), "state", SHARD)]
    found = [each for each in check(recording().replaced({("state", SHARD): state})).problems if each.check == "chain"]
    assert [(each.topic, each.step) for each in found] == [("state", journal()[-1]["step"])]


def test_an_export_that_ends_earlier_has_no_state_and_nothing_wrong() -> None:
    report = check(without("state"))
    assert report.problems == []
    assert report.looked_at["shards whose state is not there, to close the chain"] == 2


@pytest.mark.parametrize("topic", ["dispatch", "rejected", "policy"])
def test_without_a_topic_that_the_journal_is_held_against_nothing_is_said(topic: str) -> None:
    with pytest.raises(ConfigError, match=topic):
        check(without(topic))


@pytest.mark.parametrize("others", [True, False])
def test_a_checkpoint_that_claims_to_be_of_before_all_steps_changes_nothing(others: bool) -> None:
    """Of another deployment's rows the books could know nothing, and so prove little."""
    given = take(recording(), SHARD)
    foot = decode_part(records(given, TOPIC, SHARD)[-1].value)
    assert isinstance(foot, Foot)
    given = given if others else recording()
    empty = msgspec.structs.replace(
        foot, step=0, rows=5, chunks=0, head=100, id="forged", digest="cae66941d9efbd404e4d88758ea67670", positions=None
    )
    report = check(append(given, SHARD, [encode_part(empty)]))
    assert [each.check for each in report.problems] == ["checkpoints"]
    assert report.looked_at.get("times that the books begin in the middle", 0) == (0 if others else 1)
