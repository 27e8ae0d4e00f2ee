"""How records are taken by turns, and under which membership."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streams.errors import ConfigError, OwnershipLost, Unavailable
from streams.gate import turns as module
from streams.gate.turns import SHARE_RECORDS, TURN_RECORDS, Turns, open_consumer
from streams.kafka import KafkaSettings
from streams.wire import intake_topic, tenant_of
from tests.unit.gate.fakes import PREFIX, FakeConsumer, failure, metadata, record

NO_TEXT = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def joined(*tenants: str) -> tuple[FakeConsumer, Turns]:
    consumer = FakeConsumer(*tenants)
    turns = Turns(consumer, PREFIX)
    assert turns.take(0) == []
    return consumer, turns


def by_tenant(turns: Turns) -> Counter[str]:
    return Counter(tenant_of(PREFIX, each.topic) or "" for each in turns.take(0))


def test_a_record_comes_as_it_is() -> None:
    consumer, turns = joined("a")
    consumer.queue.append(record("a", 5, b"value", headers=[("h", b"1")]))
    [taken] = turns.take(0)
    assert taken == ("p.requests.of.a", 0, 5, 1_000, b"a", b"value", [("h", b"1")])
    assert turns.topics == 1
    assert turns.take(0) == []


def test_a_flood_waits_behind_its_share_and_holds_up_nobody() -> None:
    consumer, turns = joined("flood", "quiet")
    consumer.queue.extend(record("flood", offset) for offset in range(3 * SHARE_RECORDS))
    consumer.queue.append(record("quiet", 0))
    assert by_tenant(turns) == {"flood": SHARE_RECORDS, "quiet": 1}
    assert consumer.pauses == ["p.requests.of.flood"]
    consumer.queue.append(record("quiet", 1))  # while the flood is fetched again
    assert by_tenant(turns) == {"flood": SHARE_RECORDS, "quiet": 1}
    assert by_tenant(turns) == {"flood": SHARE_RECORDS}
    assert by_tenant(turns) == {}


def test_large_records_use_up_a_share_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE_BYTES", 10_000)
    consumer, turns = joined("a", "b")
    consumer.queue.extend(record("a", offset, b"x" * 4_000) for offset in range(5))
    consumer.queue.append(record("b", 0, b"x" * 20_000))
    assert by_tenant(turns) == {"a": 3, "b": 1}
    assert by_tenant(turns) == {"a": 2}


@pytest.mark.parametrize(("limit", "value"), [("TURN_RECORDS", 10), ("TURN_BYTES", 9_500)])
def test_a_turn_is_bounded_and_what_is_left_comes_first_in_the_next(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(module, limit, value)
    monkeypatch.setattr(module, "SHARE_RECORDS", 4)
    tenants = ["a", "b", "c", "d"]
    consumer, turns = joined(*tenants)
    for offset in range(4):
        consumer.queue.extend(record(tenant, offset, b"x" * 999) for tenant in tenants)
    assert by_tenant(turns).total() == 10
    assert by_tenant(turns).total() == 6


def test_whatever_the_order_each_tenants_records_keep_theirs_and_none_is_missed() -> None:
    chance = random.Random(7)
    tenants = ["a", "b", "c"]
    consumer, turns = joined(*tenants)
    sizes = {"a": 2_300, "b": 900, "c": 20}
    todo = [tenant for tenant, size in sizes.items() for _ in range(size)]
    chance.shuffle(todo)
    counts: Counter[str] = Counter()
    for tenant in todo:
        consumer.queue.append(record(tenant, counts[tenant]))
        counts[tenant] += 1
    seen: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    while taken := turns.take(0):
        assert len(taken) <= TURN_RECORDS
        assert max(Counter(each.topic for each in taken).values()) <= SHARE_RECORDS
        for each in taken:
            seen[tenant_of(PREFIX, each.topic) or ""].append(each.offset)
    assert seen == {tenant: list(range(size)) for tenant, size in sizes.items()}


def test_all_partitions_of_a_topic_have_one_share() -> None:
    consumer = FakeConsumer()
    turns = Turns(consumer, PREFIX)
    topic = intake_topic(PREFIX, "a")
    consumer._on_assign(consumer, [TopicPartition(topic, 0), TopicPartition(topic, 1)])  # type: ignore[arg-type]
    consumer.queue.extend(record("a", offset) for offset in range(SHARE_RECORDS + 1))
    assert len(turns.take(0)) == SHARE_RECORDS
    assert consumer.pauses == [topic, topic]


@pytest.mark.parametrize("how", ["revoke", "lose"])
def test_what_is_taken_away_is_not_passed_on(how: str) -> None:
    consumer, turns = joined("a", "b")
    consumer.queue.extend([record("a", 1), record("b", 1), getattr(consumer, how)])
    assert turns.take(0) == []
    assert turns.topics == 0
    with pytest.raises(OwnershipLost):
        _ = turns.membership
    consumer.generation = 2
    consumer.queue.extend([lambda: consumer.assign("b"), record("b", 1)])
    assert by_tenant(turns) == {"b": 1}
    assert turns.membership == metadata(2)


def test_a_topic_that_was_paused_and_given_back_is_resumed_when_it_comes_again() -> None:
    consumer, turns = joined("a")
    consumer.queue.extend(record("a", offset) for offset in range(SHARE_RECORDS))
    consumer.queue.extend([consumer.revoke, lambda: consumer.assign("a")])
    assert by_tenant(turns) == {}
    assert consumer.paused == {"p.requests.of.a"}
    consumer.queue.append(record("a", 0))
    assert by_tenant(turns) == {"a": 1}
    assert not consumer.paused


def test_also_if_it_was_anothers_in_between() -> None:
    consumer, turns = joined("a", "b")
    consumer.queue.extend(record("a", offset) for offset in range(SHARE_RECORDS))
    consumer.queue.extend([consumer.revoke, lambda: consumer.assign("b")])
    assert by_tenant(turns) == {}
    assert by_tenant(turns) == {}
    consumer.queue.extend([consumer.revoke, lambda: consumer.assign("a", "b")])
    assert by_tenant(turns) == {}
    consumer.queue.append(record("a", 0))
    assert by_tenant(turns) == {"a": 1}


def test_the_membership_is_that_of_the_assignment_not_what_the_client_has_heard_since() -> None:
    consumer, turns = joined("a")
    consumer.queue.append(record("a", 0))
    turns.take(0)
    consumer.generation = -1  # thrown out, and told so in the background
    assert turns.membership == metadata(1)


def test_an_assignment_without_a_generation_gives_no_membership() -> None:
    consumer, turns = joined()
    consumer.generation = -1
    consumer.queue.extend([lambda: consumer.assign("a"), record("a", 0)])
    assert by_tenant(turns) == {"a": 1}
    with pytest.raises(OwnershipLost, match="without this gate"):
        _ = turns.membership


def test_who_has_not_joined_shows_no_generation_to_librdkafka_either() -> None:
    kafka = KafkaSettings(servers="127.0.0.1:1", prefix=PREFIX)
    consumer = open_consumer(kafka, "p.gate", session_timeout_ms=10_000, look_every_ms=3_000)
    given = consumer.consumer_group_metadata()
    assert given[:11] == metadata(-1)[:11]
    consumer.close()
    assert isinstance(consumer, Consumer)


def test_a_broker_that_is_away_and_a_topic_that_is_gone_are_waited_for() -> None:
    consumer, turns = joined("a")
    for code in (KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART):
        consumer.queue.extend([record("a", 0), failure(code), record("a", 1)])
        assert [each.offset for each in turns.take(0)] == [0]
        assert [each.offset for each in turns.take(0)] == [1]


def test_what_waiting_does_not_mend_is_raised() -> None:
    consumer, turns = joined("a")
    consumer.queue.append(failure(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(ConfigError, match="rights"):
        turns.take(0)


def test_errors_of_the_client_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer, turns = joined("a")

    def broken(_timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))

    monkeypatch.setattr(consumer, "poll", broken)
    with pytest.raises(Unavailable):
        turns.take(0)


@pytest.mark.parametrize("failure", [SystemError("returned a result with an exception set"), NO_TEXT])
def test_names_of_headers_that_are_no_text_are_left_to_the_checker(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    class Odd:
        """A message whose headers cannot be decoded: the client raises when they are asked for."""

        def __getattr__(self, name: str) -> object:
            return getattr(record("a", 3), name)

        def headers(self) -> None:
            raise failure

    consumer, turns = joined("a")
    polls = iter([Odd(), None])
    monkeypatch.setattr(consumer, "poll", lambda _timeout: next(polls))
    [taken] = turns.take(0)
    assert (taken.offset, taken.headers) == (3, None)


def test_closing_leaves_the_group() -> None:
    consumer, turns = joined("a")
    turns.close()
    assert consumer.closed
