"""Turn after turn; and what is made of failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from streams import clock
from streams.client.stopping import Stopping
from streams.errors import BadRecord, ConfigError, FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.gate import GateSettings
from streams.gate.checking import Checker, Verdict
from streams.gate.gate import Gate, Session
from streams.gate.turns import Turns
from streams.kafka import KafkaSettings
from streams.wire import decode_rejection, topic_names
from tests.unit.gate.fakes import PREFIX, FakeConsumer, metadata, record

KAFKA = KafkaSettings(servers="127.0.0.1:1", prefix=PREFIX)
Write = tuple[list[Verdict], dict[tuple[str, int], int], bytes]


class FakeWriter:
    """Keeps what was written; does not take values that hold `heavy`; fails as told."""

    def __init__(self) -> None:
        self.written: list[Write] = []
        self.heavy = b"heavy"
        self.failures: list[Exception] = []
        self.tries = 0

    def write(self, verdicts: Sequence[Verdict], offsets: Mapping[tuple[str, int], int], membership: bytes) -> None:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        if any(self.heavy in verdict.value for verdict in verdicts if not verdict.refused):
            raise BadRecord("too large")
        self.written.append((list(verdicts), dict(offsets), membership))


class Rig:
    """A session over fakes, with partitions assigned."""

    def __init__(self, *tenants: str) -> None:
        self.consumer = FakeConsumer(*tenants)
        self.writer = FakeWriter()
        turns = Turns(self.consumer, PREFIX)
        checker = Checker(PREFIX, topic_names(PREFIX), shards=2)
        self.session: Final = Session(turns, checker, self.writer)  # type: ignore[arg-type] # all that it uses
        assert not self.session.turn(0)

    def do(self, *records: object) -> bool:
        self.consumer.queue.extend(records)  # type: ignore[arg-type]
        return self.session.turn(0)


def test_a_turn_is_one_write_of_all_verdicts_and_the_offsets_behind_them() -> None:
    rig = Rig("a", "b")
    assert rig.do(record("a", 4), record("b", 9), record("a", 5, b"junk"))
    [(verdicts, offsets, membership)] = rig.writer.written
    assert [(verdict.topic, verdict.key) for verdict in verdicts] == [
        ("p.requests", b"a"),
        ("p.requests", b"b"),
        ("p.rejected", b"a"),
    ]
    assert offsets == {("p.requests.of.a", 0): 6, ("p.requests.of.b", 0): 10}
    assert membership == metadata(1)


def test_without_records_nothing_is_written() -> None:
    rig = Rig("a")
    assert not rig.do()
    assert rig.writer.tries == 0


def test_a_record_that_kafka_does_not_take_is_found_and_refused_and_the_others_pass() -> None:
    rig = Rig("a")
    values = [record("a", offset) for offset in range(50)]
    heavy = [17, 18, 40]
    for offset in heavy:
        values[offset] = record("a", offset, b'{"tenant":"a","run_id":"r","workflow":"heavy"}')
    assert rig.do(*values)
    verdicts = [verdict for written, _, _ in rig.writer.written for verdict in written]
    assert [number for number, verdict in enumerate(verdicts) if verdict.refused] == heavy
    assert len(verdicts) == 50
    found = [decode_rejection(verdict.value) for verdict in verdicts if verdict.refused]
    assert [each.position.offset for each in found] == heavy
    assert {each.detail for each in found} == {"Kafka does not take it: too large"}
    # In order, so that no offset is committed before what stands in front of it is done with.
    ends = [offsets["p.requests.of.a", 0] for _, offsets, _ in rig.writer.written]
    assert ends == sorted(ends)
    assert ends[-1] == 50
    assert rig.writer.tries < 50


def test_nothing_is_written_without_a_membership() -> None:
    rig = Rig()
    rig.consumer.generation = -1
    rig.consumer.queue.extend([lambda: rig.consumer.assign("a"), record("a", 0)])
    with pytest.raises(OwnershipLost):
        rig.session.turn(0)
    assert rig.writer.tries == 0


def test_what_was_done_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streams.gate")
    rig = Rig("a")
    rig.do(record("a", 0), record("a", 1, b"junk"), record("a", 2))
    caplog.clear()
    rig.session.report()
    rig.session.report()
    assert caplog.messages == ["streams.gate.done passed=2 refused=1 topics=1"]


class Sessions:
    """A gate whose sessions end as told; the last of them asks it to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ends: Exception | None) -> None:
        self.stopping = Stopping()
        self.gate = Gate(KAFKA, GateSettings(), self.stopping)
        self.waits: list[float] = []
        self._ends = list(ends)
        self._now_s = 0.0
        monkeypatch.setattr(self.gate, "_serve_once", self._serve_once)
        monkeypatch.setattr(clock, "monotonic", lambda: self._now_s)
        monkeypatch.setattr(clock, "pause", self._pass)

    def _serve_once(self) -> None:
        self.waits.append(round(self._now_s, 1))
        end = self._ends.pop(0)
        if not self._ends:
            self.stopping.ask()
        if end is not None:
            raise end

    def _pass(self, seconds: float) -> None:
        self._now_s += seconds


@pytest.mark.parametrize("failure", [OwnershipLost, StepAborted, Unavailable])
def test_a_new_session_follows_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Callable[[], FairstreamError]
) -> None:
    sessions = Sessions(monkeypatch, failure(), failure(), failure(), failure(), failure(), failure(), None)
    sessions.gate.serve()
    waits = [later - before for before, later in zip(sessions.waits, sessions.waits[1:], strict=False)]
    assert waits == pytest.approx([0.5, 1, 2, 4, 5, 5], abs=0.15)
    assert len([line for line in caplog.messages if line.startswith("streams.gate.again")]) == 6


def test_a_failure_while_it_stops_is_no_news(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    Sessions(monkeypatch, Unavailable()).gate.serve()
    assert caplog.messages == []


@pytest.mark.parametrize("failure", [ConfigError("no right"), FairstreamError("?"), ZeroDivisionError()])
def test_what_a_new_session_would_not_mend_ends_it(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    sessions = Sessions(monkeypatch, failure, None)
    with pytest.raises(type(failure)):
        sessions.gate.serve()


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="session_timeout_s"):
        GateSettings(session_timeout_s=0)


def test_gates_differ_by_their_names() -> None:
    assert GateSettings(name="x").transactional_id(KAFKA) == "p.gate-x"
    assert GateSettings().transactional_id(KAFKA).startswith("p.gate-")
    assert len(GateSettings().transactional_id(KAFKA)) > len("p.gate-")
