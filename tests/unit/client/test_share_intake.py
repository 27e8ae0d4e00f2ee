from __future__ import annotations

import math

import pytest
from confluent_kafka import AcknowledgeType, KafkaError

from streams.client.share_intake import HOLD_AT_MOST_S, HOLD_S, LAST_DELIVERY, ShareIntake
from streams.errors import ConfigError
from tests.unit.client.fakes import Clock, FakeShareConsumer, make_message, make_revoke

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def test_what_there_is_room_for_is_accepted_once_it_is_settled() -> None:
    consumer = FakeShareConsumer([make_message(0), make_message(1)])
    intake = ShareIntake(consumer)
    assert [each.run_id for each in intake.take(2, 1).assignments] == ["r0", "r1"]
    assert consumer.acknowledged == []
    intake.settle()
    assert consumer.acknowledged == [(0, ACCEPT), (1, ACCEPT)]
    assert consumer.commits == 1


def test_settling_nothing_sends_nothing() -> None:
    consumer = FakeShareConsumer()
    intake = ShareIntake(consumer)
    intake.take(1, 1)
    intake.settle()
    assert consumer.commits == 0


@pytest.mark.parametrize("deliveries", range(1, LAST_DELIVERY))
def test_a_fresh_record_without_room_is_passed_on_at_once(deliveries: int) -> None:
    consumer = FakeShareConsumer([make_message(0), make_message(1, deliveries=deliveries)])
    intake = ShareIntake(consumer)
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r0"]
    intake.settle()
    assert consumer.acknowledged == [(1, RELEASE), (0, ACCEPT)]


def test_a_record_on_its_last_deliveries_waits_a_moment_for_room(time: Clock) -> None:
    consumer = FakeShareConsumer([make_message(0), make_message(1, deliveries=LAST_DELIVERY)], [make_message(2)])
    intake = ShareIntake(consumer)
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r0"]
    intake.settle()
    time.now_s = HOLD_S * 0.9
    assert intake.take(0, 1) == ([], [], [])
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r1"]
    intake.settle()
    assert consumer.acknowledged == [(0, ACCEPT), (1, ACCEPT)]
    assert [each.run_id for each in intake.take(1, 1).assignments] == ["r2"]


def test_it_waits_on_while_runs_keep_ending_but_not_for_ever(time: Clock) -> None:
    records = [make_message(n, deliveries=LAST_DELIVERY) for n in range(99)]
    intake = ShareIntake(FakeShareConsumer(records))
    started, refused = 0, 0
    while refused == 0:
        taken = intake.take(1, 1)
        started, refused = started + len(taken.assignments), len(taken.refused)
        intake.settle()
        time.now_s += HOLD_S * 0.9
    assert started == math.ceil(HOLD_AT_MOST_S / (HOLD_S * 0.9)) + 1
    assert started + refused == 99


@pytest.mark.parametrize("deliveries", [LAST_DELIVERY, LAST_DELIVERY + 1])
def test_and_is_then_refused_rather_than_archived(time: Clock, deliveries: int) -> None:
    consumer = FakeShareConsumer([make_message(0), make_message(1, deliveries=deliveries)])
    intake = ShareIntake(consumer)
    assert intake.take(1, 1).refused == []
    intake.settle()
    time.now_s = HOLD_S
    assert [each.run_id for each in intake.take(0, 1).refused] == ["r1"]
    assert consumer.acknowledged == [(0, ACCEPT)]
    intake.settle()
    assert consumer.acknowledged[-1] == (1, ACCEPT)


def test_a_revocation_needs_no_room() -> None:
    consumer = FakeShareConsumer([make_message(0), make_message(1, make_revoke("r7"))])
    intake = ShareIntake(consumer)
    taken = intake.take(1, 1)
    assert len(taken.assignments) == 1
    assert [each.run_id for each in taken.revocations] == ["r7"]
    intake.settle()
    assert sorted(consumer.acknowledged) == [(0, ACCEPT), (1, ACCEPT)]


def test_an_unreadable_record_is_rejected_and_the_rest_goes_on() -> None:
    consumer = FakeShareConsumer([make_message(0, b"{"), make_message(1)])
    intake = ShareIntake(consumer)
    assert [each.run_id for each in intake.take(5, 1).assignments] == ["r1"]
    intake.settle()
    assert consumer.acknowledged == [(0, REJECT), (1, ACCEPT)]


def test_nothing_is_polled_while_there_is_no_room() -> None:
    consumer = FakeShareConsumer([make_message(0)])
    intake = ShareIntake(consumer)
    assert intake.take(0, 1) == ([], [], [])
    assert len(consumer.polls) == 1


def test_closing_gives_back_what_was_not_settled_and_what_is_held() -> None:
    consumer = FakeShareConsumer([make_message(0, deliveries=LAST_DELIVERY), make_message(1, deliveries=LAST_DELIVERY)])
    intake = ShareIntake(consumer)
    intake.take(1, 1)
    intake.close()
    assert consumer.acknowledged == [(0, RELEASE), (1, RELEASE)]
    assert consumer.closed


def test_a_broker_that_is_away_is_waited_for() -> None:
    away = make_message(0, error=KafkaError(KafkaError._ALL_BROKERS_DOWN))
    intake = ShareIntake(FakeShareConsumer([away], [make_message(1)]))
    assert intake.take(1, 1).assignments == []
    assert len(intake.take(1, 1).assignments) == 1


def test_what_waiting_cannot_mend_is_raised() -> None:
    refused = make_message(0, error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(ConfigError, match="credentials"):
        ShareIntake(FakeShareConsumer([refused])).take(1, 1)
