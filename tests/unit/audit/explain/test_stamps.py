"""The time of a report, in one pass over the completions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.audit.explain.stamps import Stamps
from streams.audit.recording import MemoryRecording, Rec

OFFSETS = (0, 1, 3, 4, 90)


class Counting(MemoryRecording):
    """Counts how often it is begun to be read."""

    begun: list[int]

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        self.begun.append(start)
        return super().read(topic, partition, start, stop)


@pytest.fixture
def recording() -> Counting:
    found = Counting(topics={("completions", 0): [Rec(offset, 1_000 + offset, b"a", b"") for offset in OFFSETS]})
    found.begun = []
    return found


def test_rising_offsets_are_told_in_one_pass(recording: Counting) -> None:
    stamp = Stamps(recording, 0)
    assert [stamp(offset) for offset in (1, 3, 90)] == [1_001, 1_003, 1_090]
    assert recording.begun == [1]


def test_the_same_one_may_be_asked_for_again(recording: Counting) -> None:
    stamp = Stamps(recording, 0)
    assert [stamp(3), stamp(3)] == [1_003, 1_003]


def test_what_is_far_is_not_read_up_to(recording: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.audit.explain.stamps._FAR", 50)
    stamp = Stamps(recording, 0)
    assert [stamp(offset) for offset in (0, 90)] == [1_000, 1_090]
    assert recording.begun == [0, 90]


def test_a_record_that_is_not_there_has_no_time(recording: Counting) -> None:
    stamp = Stamps(recording, 0)
    assert [stamp(offset) for offset in (2, 3, 91)] == [None, 1_003, None]


def test_a_time_that_cannot_be_is_none(recording: Counting) -> None:
    recording.topics["completions", 0][0] = Rec(0, -1, b"a", b"")
    assert Stamps(recording, 0)(0) is None
