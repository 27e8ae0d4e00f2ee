"""The version of the core is raised with every change of what it decides, and of what it writes down about its state.

A replay holds what was recorded against what this core decides, if both have the same version. So it may never decide
otherwise under the same one: an auditor would be told that a record was tampered with.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.replay import ShardReplay
from streams.core import VERSION, counts, reasons
from streams.rows import FILLING, MOVED, POSITIONS
from streams.rows.forms import FORMS
from streams.wire import JournalEntry, decode_journal
from tests.golden.history import TOPICS, load, make, path_of, tell

WHAT_TO_DO = (
    "The core decides otherwise than version {version} did, or writes its state down in another way. If that is meant, "
    "raise VERSION in streams/core/version.py, make the file of the new version with `python -m tests.golden.history`, "
    "and say so in the changelog: records of before can be replayed only by the version that made them."
)

OF_THE_RUNTIME = {POSITIONS, MOVED, FILLING}  # rows of which the state's hash knows nothing


@pytest.fixture(scope="module")
def recording() -> MemoryRecording:
    path = path_of(VERSION)
    assert path.exists(), f"there is no {path.name}: make it with `python -m tests.golden.history`"
    return load(path)


def entries(recording: MemoryRecording) -> list[JournalEntry]:
    return [
        decode_journal(record.value) for shard in range(recording.shards) for record in recording.read("journal", shard)
    ]


def test_what_was_decided_is_decided_again(recording: MemoryRecording) -> None:
    written: set[str] = set()
    for shard in range(recording.shards):
        replay = ShardReplay(recording, shard)
        steps = list(replay)
        assert replay.divergence is None, f"{replay.divergence}\n{WHAT_TO_DO.format(version=VERSION)}"
        assert len(steps) > 100
        written |= {key[0] for step in steps for key in step.effects.changed}
    assert written == {form.kind for form in FORMS} - OF_THE_RUNTIME, "a form of the others could change unnoticed"


def test_the_history_has_everything_that_a_step_may_decide(recording: MemoryRecording) -> None:
    """Else a change could go unnoticed."""
    told = entries(recording)
    counted = Counter[str]()
    for entry in told:
        counted.update(entry.counts)
    refused = Counter(each.reason for entry in told for each in entry.rejections)
    assert {each.outcome for entry in told for each in entry.settlements} >= {"succeeded", "failed", "returned", "lost"}
    assert {each.class_ for entry in told for each in entry.decisions} == {"default", "batch"}
    assert counted.keys() >= {
        counts.CANCELLED,
        counts.DEAD_LETTERED,
        counts.DROPPED,
        counts.EXPIRED,
        counts.LATE,
        counts.LOST,
        counts.REMOVED,
        counts.RETRIED,
        counts.REVOKED,
        counts.UNKNOWN,
        counts.UNREPORTED,
    }
    assert refused.keys() >= {
        reasons.UNKNOWN_TENANT,
        reasons.QUEUE_FULL,
        reasons.OVERLOADED,
        reasons.TOO_LARGE,
        reasons.DUPLICATE,
        reasons.DEADLINE_PASSED,
    }
    assert any(entry.revokes for entry in told)
    assert sum(entry.takeover for entry in told) > recording.shards
    assert max(each.attempt for entry in told for each in entry.decisions) > 1


def test_a_history_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "history-v9.jsonl.gz"
    path.touch()
    with pytest.raises(FileExistsError):
        make(path)


def test_a_history_is_read_as_it_was_told(tmp_path: Path) -> None:
    make(tmp_path / "told.jsonl.gz")
    topics = {place: records for place, records in tell().topics.items() if place[0] in TOPICS}
    assert load(tmp_path / "told.jsonl.gz").topics == topics
