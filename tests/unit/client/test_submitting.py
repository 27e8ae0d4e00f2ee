from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from streams.client.publisher import Publisher
from streams.client.run_files import Line
from streams.client.submitting import Submitted, submit_lines
from streams.errors import BadRecord, NotDelivered
from streams.kafka import KafkaSettings
from tests.unit.client.fakes import Clock, FakeProducer

KAFKA = KafkaSettings(servers="127.0.0.1:1")


def good(number: int) -> Line:
    return Line(number, {"tenant": "a", "run_id": f"r{number}", "workflow": "w"})


def test_good_lines_are_filed_and_bad_ones_told() -> None:
    producer = FakeProducer()
    told: list[tuple[int, str]] = []
    lines = [good(1), Line(2, {}, BadRecord("not JSON")), Line(3, {"tenant": "a", "run_id": "x"}), good(4)]
    steps: list[int] = []
    done = submit_lines(
        Publisher(KAFKA, producer=producer),
        lines,
        bad_line=lambda number, problem: told.append((number, str(problem))),
        progress=lambda: steps.append(1),
    )
    assert done == Submitted(filed=2, bad=2)
    assert len(producer.sent) == 2
    assert told == [(2, "not JSON"), (3, "workflow: missing; a submit needs it")]
    assert len(steps) == 4


def test_a_rate_is_kept(time: Clock) -> None:
    producer = FakeProducer()
    filed_at: list[float] = []

    class Waiting(Publisher):
        def poll(self, timeout_s: float = 0.0) -> None:
            filed_at.append(time.now_s)
            time.now_s += min(timeout_s, 0.03)

    submit_lines(Waiting(KAFKA, producer=producer), [good(n) for n in range(10)], bad_line=lambda *_: None, rate=10)
    assert time.now_s == pytest.approx(1.0)
    assert filed_at == sorted(filed_at)


def test_what_kafka_does_not_take_is_raised() -> None:
    producer = FakeProducer()
    producer.fail_with = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(NotDelivered):
        submit_lines(Publisher(KAFKA, producer=producer), [good(1)], bad_line=lambda *_: None)
