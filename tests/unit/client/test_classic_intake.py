from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, TopicPartition

from streams.client.classic_intake import FULL_FOR_S, ClassicIntake
from streams.errors import ConfigError
from tests.unit.client.fakes import Clock, FakeConsumer, make_message, make_revoke


def test_no_more_is_taken_than_there_is_room_for() -> None:
    consumer = FakeConsumer(*[make_message(n) for n in range(5)])
    intake = ClassicIntake(consumer)
    assert [each.run_id for each in intake.take(3, 1).assignments] == ["r0", "r1", "r2"]
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r3"]
    assert len(consumer.messages) == 1


def test_an_offset_is_stored_once_it_is_settled() -> None:
    consumer = FakeConsumer(make_message(4), make_message(5))
    intake = ClassicIntake(consumer)
    intake.take(5, 1)
    assert consumer.stored == []
    intake.settle()
    intake.settle()
    assert consumer.stored == [(0, 6)]


def test_a_partition_that_moved_is_not_ours_to_count() -> None:
    consumer = FakeConsumer(make_message(4))
    intake = ClassicIntake(consumer)
    intake.take(1, 1)
    consumer.owned = [TopicPartition("runs.dispatch", 9)]
    intake.settle()
    assert consumer.stored == []


def test_a_revocation_is_handed_on() -> None:
    intake = ClassicIntake(FakeConsumer(make_message(0, make_revoke("r7"))))
    assert [each.run_id for each in intake.take(1, 1).revocations] == ["r7"]


def test_an_unreadable_record_is_passed_over() -> None:
    consumer = FakeConsumer(make_message(0, b"{"), make_message(1))
    intake = ClassicIntake(consumer)
    assert [each.run_id for each in intake.take(5, 1).assignments] == ["r1"]
    intake.settle()
    assert consumer.stored == [(0, 2)]


def test_a_moment_without_room_is_sat_out(time: Clock) -> None:
    time.now_s = 100
    consumer = FakeConsumer(make_message(0))
    intake = ClassicIntake(consumer)
    intake.take(0, 1)
    time.now_s += FULL_FOR_S / 2
    intake.take(0, 1)
    assert not consumer.paused
    assert len(intake.take(1, 1).assignments) == 1


def test_a_full_worker_stays_a_member_and_goes_on_where_it_was(time: Clock) -> None:
    time.now_s = 100
    consumer = FakeConsumer(make_message(0))
    intake = ClassicIntake(consumer)
    for _ in range(3):
        assert intake.take(0, 1) == ([], [], [])
        time.now_s += FULL_FOR_S
    assert consumer.paused
    assert consumer.polled_while_paused == 2
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r0"]
    assert not consumer.paused


def test_what_comes_in_spite_of_the_pause_is_kept_for_later(time: Clock) -> None:
    time.now_s = 100
    consumer = FakeConsumer(make_message(0))
    intake = ClassicIntake(consumer)
    intake.take(0, 1)
    time.now_s += FULL_FOR_S
    consumer.poll = lambda timeout: make_message(0)  # type: ignore[method-assign] # noqa: ARG005 - a partition just assigned
    intake.take(0, 1)
    intake.settle()
    assert consumer.stored == []
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r0"]
    intake.settle()
    assert consumer.stored == [(0, 1)]


def test_closing_leaves_the_group() -> None:
    consumer = FakeConsumer()
    ClassicIntake(consumer).close()
    assert consumer.closed


def test_a_broker_that_is_away_is_waited_for() -> None:
    away = make_message(0, error=KafkaError(KafkaError._TRANSPORT))
    intake = ClassicIntake(FakeConsumer(away, make_message(1)))
    assert len(intake.take(2, 1).assignments) == 1


def test_what_waiting_cannot_mend_is_raised() -> None:
    refused = make_message(0, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(ConfigError, match="credentials"):
        ClassicIntake(FakeConsumer(refused)).take(1, 1)
