"""What the observer makes of records as they are written by the real encoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError

from streams.core.effects import Dispatch, Effects, Rejection, Revoke, Settlement
from streams.core.inputs import SUCCEEDED
from streams.core.records import FlowRecord, RunRecord, ShardRecord, key_of
from streams.demo import observer
from streams.demo.observer import Observer, read_accounts
from streams.demo.records import Account, Filed, Handed, Report
from streams.errors import BadRecord, FairstreamError, Unavailable
from streams.kafka import KafkaSettings
from streams.rows import encode, encode_key
from streams.wire import (
    Position,
    encode_completion,
    encode_dispatch,
    encode_journal,
    encode_rejection,
    encode_request,
    encode_revoke,
)

KAFKA = KafkaSettings(servers="nowhere:1", prefix="t.")
TOPICS = KAFKA.topics


class FakeMessage(NamedTuple):
    """What a consumer returns."""

    topic_: str
    value_: bytes | None
    key_: bytes = b"k"
    at_ms: int = 0
    error_: KafkaError | None = None

    def topic(self) -> str:
        return self.topic_

    def value(self) -> bytes | None:
        return self.value_

    def key(self) -> bytes:
        return self.key_

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at_ms

    def error(self) -> KafkaError | None:
        return self.error_


class FakeConsumer:
    """Returns what it was given, one message by `poll`, the rest by `consume`."""

    def __init__(self, *messages: FakeMessage) -> None:
        self.waiting = list(messages)
        self.closed = False

    def poll(self, timeout_s: float) -> FakeMessage | None:
        del timeout_s
        return self.waiting.pop(0) if self.waiting else None

    def consume(self, number: int, timeout_s: float) -> list[FakeMessage]:
        del timeout_s
        taken, self.waiting = self.waiting[:number], self.waiting[number:]
        return taken

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeConsumer]:
    fake = FakeConsumer()
    monkeypatch.setattr(observer, "_open", lambda *_: fake)
    yield fake
    assert fake.closed


def end() -> FakeMessage:
    return FakeMessage(TOPICS.state, None, error_=KafkaError(KafkaError._PARTITION_EOF))


def test_what_is_written_is_what_is_kept(consumer: FakeConsumer) -> None:
    dispatch = Dispatch(3, "acme", "r1", "work", "default", 2, 500, 60_000, None, b"", 11, 1, 700, 200)
    effects = Effects(1, 20)
    effects.settlements += [
        Settlement("acme", "r1", 1, "lost", 500, 0, reported=True),
        Settlement("acme", "r1", 2, SUCCEEDED, 500, 430, reported=True),
    ]
    consumer.waiting = [
        FakeMessage(TOPICS.requests, encode_request(tenant="acme", run_id="r1", workflow="work"), at_ms=11),
        FakeMessage(TOPICS.dispatch, encode_dispatch(dispatch, 0, 1, 1), at_ms=12),
        FakeMessage(TOPICS.dispatch, encode_revoke(Revoke(4, "acme", "r1", 1, "why"), 0, 1, 1), at_ms=13),
        FakeMessage(
            TOPICS.completions,
            encode_completion(tenant="acme", run_id="r1", attempt=2, status=SUCCEEDED, tokens=430),
            at_ms=14,
        ),
        FakeMessage(TOPICS.journal, encode_journal(effects, shard=0, epoch=1, policy_version=0, inputs=[])),
        FakeMessage(TOPICS.requests, None, error_=KafkaError(KafkaError._PARTITION_EOF)),
    ]
    with Observer(KAFKA) as seen:
        seen.poll(0.1)
        records = seen.records
    assert records.filed == [Filed("acme", "r1", 11)]
    assert records.handed == [Handed(3, "acme", "r1", 2, 500, 12)]
    assert records.reports == [Report("acme", "r1", 2, SUCCEEDED, 430, 14)]
    assert records.settled == effects.settlements
    assert (records.succeeded, records.steps, records.refused) == (1, 1, [])


def test_a_refusal_is_kept_as_a_sentence(consumer: FakeConsumer) -> None:
    refused = Rejection("acme", "r1", "queue_full", "too many", 1, 2, None, 5, b"")
    value = encode_rejection(refused, Position("requests", 0, 5), shard=0, step=1, at_ms=12)
    consumer.waiting = [FakeMessage(TOPICS.rejected, value)]
    with Observer(KAFKA) as seen:
        seen.poll(0.1)
        assert seen.records.refused == ["acme/r1: queue_full: too many"]


def test_nonsense_in_a_topic_is_not_passed_over(consumer: FakeConsumer) -> None:
    consumer.waiting = [FakeMessage(TOPICS.dispatch, b"{}")]
    with Observer(KAFKA) as seen, pytest.raises(BadRecord):
        seen.poll(0.1)


def row(record: ShardRecord | FlowRecord | RunRecord, *, gone: bool = False) -> FakeMessage:
    return FakeMessage(TOPICS.state, None if gone else encode(record), key_=encode_key(0, key_of(record)))


def flow(tenant: str, charged: int, actual: int) -> FlowRecord:
    return FlowRecord(class_="default", tenant=tenant, place=0, charged=charged, actual=actual)


RUN = RunRecord("acme", "r1", "work", "default", 1, 500, None, None, 3, 60_000, 11, 0, b"")


def test_the_last_row_of_each_tenant_counts(consumer: FakeConsumer) -> None:
    consumer.waiting = [
        row(ShardRecord(shard=0, shards=1)),
        row(flow("acme", 100, 0)),
        row(RUN),
        row(flow("zenith", 70, 70)),
        row(flow("acme", 90, 90)),
        row(RUN, gone=True),
        end(),
    ]
    assert read_accounts(KAFKA, 1.0) == {"acme": Account(90, 90), "zenith": Account(70, 70)}


def test_a_run_that_is_still_there_is_told(consumer: FakeConsumer) -> None:
    consumer.waiting = [row(flow("acme", 100, 0)), row(RUN), end()]
    with pytest.raises(FairstreamError, match="still knows 1 runs"):
        read_accounts(KAFKA, 1.0)


def test_a_topic_without_an_end_is_not_waited_for_for_ever(consumer: FakeConsumer) -> None:
    consumer.waiting = [row(flow("acme", 100, 0))]
    with pytest.raises(Unavailable, match=TOPICS.state):
        read_accounts(KAFKA, 0.0)
