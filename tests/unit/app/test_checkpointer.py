"""When a checkpoint is due, and that nothing that goes wrong with one reaches what serves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from streams import clock
from streams.admin.checkpointing import Last
from streams.app import checkpointer as module
from streams.app.checkpointer import Checkpointer, Turns, due
from streams.errors import ConfigError, OwnershipLost
from streams.kafka import KafkaSettings
from streams.rows.checkpoint import FORM, Foot

HOUR_MS: Final = 3_600_000
WAIT_S: Final = 10.0
KAFKA: Final = KafkaSettings(servers="nowhere:1")


def foot(rows: int = 100, state_end: int = 1_000) -> Foot:
    return Foot(FORM, "c1", 0, 41, 1, 1, 0, 1, rows, "", None, state_end, 0)


@pytest.mark.parametrize(
    ("age_ms", "state_end", "expected"),
    [
        (HOUR_MS - 1, 5_000, False),  # whoever wrote the last one
        (HOUR_MS, 5_000, True),
        (HOUR_MS, 1_099, False),  # as many rows would be written as have changed
        (HOUR_MS, 1_100, True),
        (24 * HOUR_MS, 1_001, True),  # but its inputs must last
        (24 * HOUR_MS, 1_000, False),  # nothing has changed
        (2 * HOUR_MS, 3, True),  # the state topic was made anew
        (-30_000, 5_000, False),  # a clock that is ahead a little
        (-2 * HOUR_MS, 5_000, True),  # and one that was wrong
    ],
)
def test_an_interval_after_the_last_one_if_enough_has_changed(age_ms: int, state_end: int, expected: bool) -> None:
    now_ms = 10**12
    assert due(Last(now_ms - age_ms, foot()), state_end, now_ms, HOUR_MS) is expected


def test_one_that_was_given_up_is_tried_again_before_the_interval_and_not_at_once() -> None:
    now_ms = 10**12
    assert not due(Last(now_ms - 60_000, None), 9, now_ms, HOUR_MS)
    assert due(Last(now_ms - 600_000, None), 9, now_ms, HOUR_MS)
    assert due(None, 9, now_ms, HOUR_MS), "there is none at all"


def call_often(turns: Turns, *, late: bool = False) -> None:
    for _ in range(1_000):
        turns(late)


def test_steps_have_most_of_the_time() -> None:
    pauses: list[float] = []
    turns = Turns(lambda: False, pauses.append)
    call_often(turns)
    assert len(pauses) == 5
    assert all(0 < pause <= 0.02 for pause in pauses)
    call_often(turns, late=True)
    assert len(pauses) == 5, "the end must be reached, however much is written meanwhile"


def test_the_end_of_the_process_ends_a_copy() -> None:
    turns = Turns(lambda: True, lambda _: None)
    for late in (False, True):
        with pytest.raises(OwnershipLost):
            call_often(turns, late=late)


class Kafka:
    """What the checkpointer asks and does, in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[int] = []
        self.looks: list[int] = []
        self.failures: list[Exception] = []
        self.last: dict[int, Last] = {}
        monkeypatch.setattr(module, "open_reader", self.open_reader)
        monkeypatch.setattr(module, "bounds", lambda *_: (0, 10))
        monkeypatch.setattr(module, "last_of", self.last_of)
        monkeypatch.setattr(module, "write_checkpoint", self.write)
        monkeypatch.setattr(module, "_AGAIN_MS", 1)

    @contextmanager
    def open_reader(self, *_: object) -> Iterator[None]:
        yield None

    def last_of(self, _kafka: object, _consumer: object, shard: int) -> Last | None:
        self.looks.append(shard)
        if self.failures:
            raise self.failures.pop(0)
        return self.last.get(shard)

    def write(self, _kafka: object, shard: int, **_: object) -> Foot:
        self.written.append(shard)
        self.last[shard] = Last(clock.now_ms(), foot())
        return foot()


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    return Kafka(monkeypatch)


@contextmanager
def running(checkpointer: Checkpointer) -> Iterator[None]:
    checkpointer.start()
    try:
        yield
    finally:
        checkpointer.close()
        checkpointer.join(WAIT_S)
        assert not checkpointer.is_alive()


def test_each_shard_of_the_process_gets_one_and_not_again_within_the_interval(kafka: Kafka) -> None:
    rounds = threading.Semaphore(0)

    def shards() -> list[int]:
        rounds.release()
        return [0, 2]

    checkpointer = Checkpointer(KAFKA, shards, interval_s=HOUR_MS / 1000, look_s=0.001)
    with running(checkpointer):
        for _ in range(20):
            assert rounds.acquire(timeout=WAIT_S)
    assert kafka.written == [0, 2]
    assert kafka.looks == [0, 2], "nor is Kafka asked before"


def test_a_shard_that_comes_back_is_looked_at_and_has_its_checkpoint_still(kafka: Kafka) -> None:
    served = iter([[0], [], [0]])
    over = threading.Event()

    def shards() -> list[int]:
        try:
            return next(served)
        except StopIteration:
            over.set()
            return []

    checkpointer = Checkpointer(KAFKA, shards, interval_s=HOUR_MS / 1000, look_s=0.001)
    with running(checkpointer):
        assert over.wait(WAIT_S)
    assert kafka.looks == [0, 0]
    assert kafka.written == [0]


@pytest.mark.parametrize(
    "error",
    [ConfigError("create the topics with `fairstream topics`"), OwnershipLost("another epoch"), KeyError("a bug")],
)
def test_a_failure_is_said_once_and_tried_again(
    kafka: Kafka, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.failures = [error, error, error]
    caplog.set_level(logging.WARNING)
    with running(Checkpointer(KAFKA, lambda: [1], interval_s=0.002)):
        clock.wait_until(lambda: kafka.written, WAIT_S, what="a checkpoint after three failures")
    (said,) = [each for each in caplog.records if "no_checkpoint" in each.getMessage()]
    assert str(error) in said.getMessage()
    assert (said.exc_info is not None) == isinstance(error, KeyError), "a bug is shown in full"


def test_one_that_is_given_up_for_the_end_of_the_process_is_no_failure(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer = Checkpointer(KAFKA, lambda: [1], interval_s=0.002)

    def write(*_: object, between: Turns, **__: object) -> None:
        checkpointer.close()
        call_often(between)
        kafka.written.append(1)

    monkeypatch.setattr(module, "write_checkpoint", write)
    checkpointer.start()
    checkpointer.join(WAIT_S)
    assert not checkpointer.is_alive()
    assert kafka.looks == [1]
    assert kafka.written == []
    assert not [each for each in caplog.records if "no_checkpoint" in each.getMessage()]


def test_none_are_written_if_none_are_wanted(kafka: Kafka) -> None:
    checkpointer = Checkpointer(KAFKA, lambda: [0], interval_s=0)
    checkpointer.start()
    checkpointer.join(WAIT_S)
    assert not checkpointer.is_alive()
    assert kafka.looks == []
