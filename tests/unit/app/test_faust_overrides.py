"""What is replaced inside Faust, and whether Faust is still what it was when it was replaced."""

import asyncio
from typing import Any

import pytest
from faust.types import TP

from streams.app.faust_overrides import RecordBatch
from streams.app.faust_overrides.consumer import BatchScheduler, Consumer
from streams.app.faust_overrides.pins import OVERRIDES, Override, fingerprint
from tests.unit.app.fakes import FakeRecord


@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_the_stock_method_is_the_one_that_was_read(override: Override) -> None:
    now = fingerprint(override.owner, override.name)
    assert now == override.pin, (
        f"{override} has changed. Read it, see whether what replaces it is still right, and pin it as {now}. "
        f"It was replaced because: {override.reason.splitlines()[0]}"
    )


@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_every_override_says_why(override: Override) -> None:
    assert len(override.reason) > 20


def test_there_is_something_to_pin() -> None:
    assert len(OVERRIDES) >= 10


def test_a_changed_method_is_noticed() -> None:
    class Stock:
        def method(self) -> int:
            return 1

    class Changed:
        def method(self) -> int:
            return 2

    assert fingerprint(Stock, "method") != fingerprint(Changed, "method")


class Record(FakeRecord):
    topic = "runs.requests"
    partition = 3
    timestamp_type = 0


def test_a_partitions_records_are_one_event() -> None:
    records = [Record(4, b"a"), Record(7, b"b")]
    tp, empty = TP("runs.requests", 3), TP("runs.requests", 4)
    scheduler: Any = BatchScheduler
    ((where, batch),) = scheduler().iterate({tp: records, empty: []})
    assert where == tp
    assert isinstance(batch, RecordBatch)
    assert (batch.topic, batch.partition, batch.offset, batch.value) == ("runs.requests", 3, 7, records)


class Acks:
    """As much of a consumer as its offsets need."""

    def __init__(self, *acked: int) -> None:
        self._acked = {TP("t", 0): list(acked)}
        self._acked_index = {TP("t", 0): set(acked)}


def test_the_offset_to_commit_follows_the_last_that_was_acked() -> None:
    acks: Any = Acks(3, 9, 5)
    assert Consumer._new_offset(acks, TP("t", 0)) == 10
    assert Consumer._new_offset(acks, TP("t", 0)) is None


def test_subscribing_to_the_same_topics_again_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []

    async def subscribe(_self: object, topics: frozenset[str]) -> None:
        asked.append(topics)

    stock = next(each.owner for each in OVERRIDES if each.name == "subscribe")
    monkeypatch.setattr(stock, "subscribe", subscribe)
    consumer = Consumer.__new__(Consumer)
    consumer._subscribed = frozenset()

    async def scenario() -> None:
        for topics in ({"a", "b"}, {"b", "a"}, {"a"}):
            await consumer.subscribe(topics)

    asyncio.run(scenario())
    assert asked == [{"a", "b"}, {"a"}]
