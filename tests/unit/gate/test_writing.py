"""One transaction a turn: what is written together, and what each of Kafka's answers means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams import transactions
from streams.errors import BadRecord, ConfigError, FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.gate.checking import Verdict
from streams.gate.writing import TurnWriter
from streams.transactions import OnDelivery

VERDICTS = [
    Verdict("p.requests", 2, b"acme", b"value", 1_000, [("h", b"1")], refused=False),
    Verdict("p.rejected", 1, b"acme", b"no", 2_000, [], refused=True),
]
OFFSETS = {("p.requests.of.acme", 0): 18}
MEMBERSHIP = b"member"
FENCED = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT, "not yet", retriable=True)
LOST = SystemError("<method 'flush'> returned NULL without setting an exception")
WHOLE = ["begin", "produce", "produce", "flush", "offsets", "commit"]


def must_abort(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "must abort", txn_requires_abort=True))


class FakeProducer:
    """A transactional producer by its contract. Each verb fails as told, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.sent: list[tuple[Any, ...]] = []
        self.offsets: list[tuple[list[TopicPartition], bytes]] = []
        self.failures: dict[str, list[BaseException | None]] = {}
        self.undelivered: list[KafkaError] = []
        self.in_queue = 0
        self.topics: dict[str, Any] = {"p.requests": SimpleNamespace(error=None, partitions=dict.fromkeys(range(3)))}
        self._on_delivery: OnDelivery

    def _call(self, verb: str) -> None:
        self.calls.append(verb)
        planned = self.failures.get(verb)
        failure = planned.pop(0) if planned else None
        if failure is not None:
            raise failure

    def init_transactions(self, timeout: float) -> None:  # noqa: ARG002 - the contract\'s
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *,
        on_delivery: OnDelivery,
        timestamp: int,
        headers: list[tuple[str, str | bytes | None]],
    ) -> None:
        self._on_delivery = on_delivery
        self.sent.append((topic, partition, key, value, timestamp, headers))
        self._call("produce")

    def flush(self, timeout: float) -> int:  # noqa: ARG002 - the contract\'s
        while self.undelivered:
            self._on_delivery(self.undelivered.pop(0), None)  # type: ignore[arg-type] # nobody looks at it
        self._call("flush")
        return self.in_queue

    def send_offsets_to_transaction(
        self,
        positions: list[TopicPartition],
        group_metadata: bytes,
        timeout: float,  # noqa: ARG002 - the contract's
    ) -> None:
        self.offsets.append((positions, group_metadata))
        self._call("offsets")

    def commit_transaction(self, timeout: float) -> None:  # noqa: ARG002 - the contract\'s
        self._call("commit")

    def abort_transaction(self, timeout: float) -> None:  # noqa: ARG002 - the contract\'s
        self._call("abort")

    def list_topics(self, topic: str, timeout: float) -> Any:  # noqa: ARG002 - the contract\'s
        self._call("list")
        return SimpleNamespace(topics={topic: self.topics[topic]})


class Clock:
    """Each look at it is a second later."""

    now_s = 0.0

    def monotonic(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    monkeypatch.setattr(transactions, "clock", Clock())
    return FakeProducer()


@pytest.fixture
def writer(producer: FakeProducer) -> TurnWriter:
    return TurnWriter(producer, patience_s=5)


def write(writer: TurnWriter) -> None:
    writer.write(VERDICTS, OFFSETS, MEMBERSHIP)


def test_records_and_offsets_are_one_transaction(writer: TurnWriter, producer: FakeProducer) -> None:
    write(writer)
    assert producer.calls == WHOLE
    assert producer.sent == [
        ("p.requests", 2, b"acme", b"value", 1_000, [("h", b"1")]),
        ("p.rejected", 1, b"acme", b"no", 2_000, []),
    ]
    [(offsets, membership)] = producer.offsets
    assert [(each.topic, each.partition, each.offset) for each in offsets] == [("p.requests.of.acme", 0, 18)]
    assert membership == MEMBERSHIP


@pytest.mark.parametrize("verb", ["offsets", "commit", "abort", "init"])
@pytest.mark.parametrize("failure", [KafkaException(TIMED_OUT), LOST])
def test_what_may_still_come_is_waited_for(
    writer: TurnWriter, producer: FakeProducer, verb: str, failure: Exception
) -> None:
    producer.failures = {verb: [failure, failure]}
    if verb == "init":
        writer.open()
    elif verb == "abort":
        producer.failures["begin"] = [must_abort(KafkaError._STATE)]
        with pytest.raises(StepAborted):
            write(writer)
    else:
        write(writer)
    assert producer.calls.count(verb) == 3


@pytest.mark.parametrize("verb", ["offsets", "commit"])
def test_patience_ends_and_then_nobody_knows(writer: TurnWriter, producer: FakeProducer, verb: str) -> None:
    producer.failures = {verb: [KafkaException(TIMED_OUT)] * 100}
    with pytest.raises(Unavailable, match="not done after 5 s"):
        write(writer)
    assert "abort" not in producer.calls


def test_a_queue_that_does_not_empty_is_given_up(writer: TurnWriter, producer: FakeProducer) -> None:
    producer.in_queue = 1
    with pytest.raises(Unavailable, match="Kafka does not answer"):
        write(writer)
    assert "offsets" not in producer.calls


def test_being_told_to_stop_ends_the_wait(producer: FakeProducer) -> None:
    producer.failures = {"init": [KafkaException(TIMED_OUT)] * 100}
    with pytest.raises(Unavailable, match="being closed"):
        TurnWriter(producer, patience_s=1_000, give_up=lambda: len(producer.calls) > 2).open()
    assert len(producer.calls) == 3


@pytest.mark.parametrize("verb", ["begin", "produce", "offsets", "commit"])
def test_what_must_be_aborted_is_and_may_be_done_again(writer: TurnWriter, producer: FakeProducer, verb: str) -> None:
    producer.failures = {verb: [must_abort(KafkaError._MSG_TIMED_OUT)]}
    with pytest.raises(StepAborted, match="nothing was written"):
        write(writer)
    assert producer.calls[-2:] == [verb, "abort"]
    producer.calls.clear()
    write(writer)
    assert producer.calls == WHOLE


@pytest.mark.parametrize(
    "code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID]
)
def test_a_gate_that_the_group_has_given_up_writes_nothing(
    writer: TurnWriter, producer: FakeProducer, code: int
) -> None:
    producer.failures = {"offsets": [must_abort(code)]}
    with pytest.raises(OwnershipLost, match="without this gate"):
        write(writer)
    assert producer.calls[-2:] == ["offsets", "abort"]


@pytest.mark.parametrize("verb", ["begin", "offsets", "commit"])
def test_a_gate_whose_name_another_has_writes_nothing(writer: TurnWriter, producer: FakeProducer, verb: str) -> None:
    producer.failures = {verb: [KafkaException(FENCED)], "abort": [KafkaException(FENCED)]}
    with pytest.raises(OwnershipLost, match="--name"):
        write(writer)


@pytest.mark.parametrize("verb", ["produce", "flush"])
def test_a_fatal_error_that_the_client_lost_comes_up_in_the_abort(
    writer: TurnWriter, producer: FakeProducer, verb: str
) -> None:
    producer.failures = {verb: [LOST], "abort": [KafkaException(FENCED)]}
    with pytest.raises(OwnershipLost):
        write(writer)
    producer.failures = {verb: [LOST]}
    with pytest.raises(StepAborted, match="its writer failed"):
        write(writer)


def test_a_broken_producer_calls_for_a_new_one(writer: TurnWriter, producer: FakeProducer) -> None:
    producer.failures = {"commit": [KafkaException(KafkaError(KafkaError.UNKNOWN, "broken", fatal=True))]}
    with pytest.raises(Unavailable, match="broken"):
        write(writer)


def test_what_no_new_start_would_mend_is_said_as_it_is(writer: TurnWriter, producer: FakeProducer) -> None:
    producer.failures = {"init": [KafkaException(KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))]}
    with pytest.raises(ConfigError, match="rights"):
        writer.open()
    producer.failures = {"offsets": [must_abort(KafkaError.GROUP_AUTHORIZATION_FAILED)]}
    with pytest.raises(ConfigError, match="rights"):
        write(writer)
    assert producer.calls[-1] == "abort"
    producer.failures = {"begin": [KafkaException(KafkaError(KafkaError._STATE, "no transaction"))]}
    producer.failures["abort"] = [KafkaException(KafkaError(KafkaError._STATE, "no transaction"))]
    with pytest.raises(FairstreamError, match="no transaction"):
        write(writer)


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, BadRecord),
        (KafkaError._MSG_TIMED_OUT, StepAborted),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigError),
    ],
)
def test_a_record_that_is_not_taken_leaves_nothing_of_its_turn(
    writer: TurnWriter, producer: FakeProducer, code: int, raised: type[FairstreamError]
) -> None:
    producer.undelivered = [KafkaError(code)]
    with pytest.raises(raised):
        write(writer)
    assert producer.calls == [*WHOLE[:4], "abort"]
    producer.calls.clear()
    write(writer)  # the failure was that turn's
    assert producer.calls == WHOLE


def test_topics_are_counted_and_missed(writer: TurnWriter, producer: FakeProducer) -> None:
    assert writer.partitions("p.requests") == 3
    unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    producer.topics["p.rejected"] = SimpleNamespace(error=unknown, partitions={})
    with pytest.raises(ConfigError, match="rejected"):
        writer.partitions("p.rejected")
