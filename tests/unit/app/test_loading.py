from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from streams import partition
from streams.app import loading
from streams.app.loading import Loaded, StateTopic
from streams.core import VERSION
from streams.core.records import FlowRecord, HistoryRecord
from streams.core.shard import Shard
from streams.errors import ConfigError, DeploymentMoved, FairstreamError, OwnershipLost, StateUnreadable, Unavailable
from streams.kafka import KafkaSettings
from streams.rows import (
    POSITIONS,
    FillingRecord,
    MovedRecord,
    PositionsRecord,
    StateHash,
    decode,
    decode_key,
    encode,
    encode_key,
    row_key,
)
from streams.wire import TOPICS, decode_journal, journal_digest
from tests.unit.app.fakes import NAMES, FakeWriter, load_from, request, requests

COUNTS = {"requests": 1, "completions": 1}
ENDS = {NAMES.requests: (0, 10), NAMES.completions: (0, 10)}
EOF = KafkaError(KafkaError._PARTITION_EOF, "end")

Row = tuple[bytes, bytes | None]


class FakeMessage:
    def __init__(self, key: bytes | None = None, value: bytes | None = None, error: KafkaError | None = None) -> None:
        self._key, self._value, self._error = key, value, error

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error


class FakeConsumer:
    """Hands out what it was given, chunk by chunk: the next one comes when it is waited for."""

    def __init__(self, chunks: list[list[FakeMessage]], ends: dict[str, tuple[int, int]]) -> None:
        self._chunks = chunks
        self._come: list[FakeMessage] = []
        self._ends = ends
        self.closed = False

    def list_topics(self, _topic: str, timeout: float) -> None:
        assert timeout > 0

    def assign(self, partitions: list[Any]) -> None:
        ((topic, partition),) = ((each.topic, each.partition) for each in partitions)
        assert (topic, partition) == (NAMES.state, 0)

    def unassign(self) -> None:
        """Nothing more is to come."""

    def consume(self, number: int, timeout: float) -> list[FakeMessage]:
        if timeout and not self._come and self._chunks:
            self._come = self._chunks.pop(0)
        given, self._come = self._come[:number], self._come[number:]
        return given

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        return self._ends[partition.topic]

    def close(self) -> None:
        self.closed = True


def load(
    monkeypatch: pytest.MonkeyPatch,
    *chunks: list[FakeMessage],
    ends: dict[str, tuple[int, int]] | None = None,
    counts: dict[str, int] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Loaded:
    consumer = FakeConsumer(list(chunks), ends or ENDS)
    seen: list[dict[str, Any]] = []

    def make(conf: dict[str, Any]) -> FakeConsumer:
        seen.append(conf)
        return consumer

    monkeypatch.setattr(partition, "Consumer", make)
    try:
        kafka = KafkaSettings(servers="nowhere:9092")
        return StateTopic(kafka, NAMES, 0, counts or COUNTS, Shard, should_stop=should_stop).load()
    finally:
        assert consumer.closed
        assert (seen[0]["isolation.level"], seen[0]["enable.partition.eof"]) == ("read_committed", True)


def messages(*rows: Row) -> list[FakeMessage]:
    return [FakeMessage(key, value) for key, value in rows]


def positions(applied: dict[str, int], epoch: int = 4, partitions: dict[str, int] | None = None) -> Row:
    row = PositionsRecord(epoch, applied, partitions or COUNTS)
    return encode_key(0, row_key(row)), encode(row)


def lived() -> FakeWriter:
    """A writer of a shard that has taken three requests."""
    writer = FakeWriter()
    load_from(writer)().step([requests(*(request(offset) for offset in range(3)))], (), 1_000)
    return writer


END = [FakeMessage(error=EOF)]


def test_an_empty_topic_is_a_fresh_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    core, reign, _ = load(monkeypatch, END)
    assert reign == PositionsRecord(epoch=1, applied={}, partitions=COUNTS)
    assert core.snapshot().shard.step == 0


def test_the_last_value_of_each_row_counts_and_a_new_epoch_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = lived()
    history = [row for step in writer.written for row in [*step.rows, step.positions]]
    older = [(key, b"[1]") for key, _ in history]  # overwritten below
    gone: list[Row] = [(encode_key(0, ("run", "a", "b")), b"x"), (encode_key(0, ("run", "a", "b")), None)]
    core, reign, _ = load(monkeypatch, messages(*older, *gone), [], messages(*history), END)
    assert (reign.epoch, reign.applied, reign.partitions) == (2, {"requests": 2}, COUNTS)
    assert core.snapshot().shard.flight_runs == 3


def test_nothing_after_the_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reign = load(monkeypatch, [*messages(positions({"requests": 4})), *END], messages((b"later", b"x"))).positions
    assert reign.epoch == 5


def test_a_row_of_another_shard_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateUnreadable, match="row of shard 3"):
        load(monkeypatch, messages((encode_key(3, ("shard",)), b"[1]")), END)


def test_rows_that_contradict_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {key: value for key, value in lived().rows.items() if b'"flow"' not in key}
    with pytest.raises(StateUnreadable, match="contradict"):
        load(monkeypatch, messages(*rows.items()), END)


def mended(rows: dict[bytes, bytes], **changes: Any) -> dict[bytes, bytes]:
    """The rows with other positions."""
    key = encode_key(0, (POSITIONS,))
    found = decode((POSITIONS,), rows[key])
    assert isinstance(found, PositionsRecord)
    return rows | {key: encode(replace(found, **changes))}


def test_the_chain_and_the_hash_go_on_where_the_last_owner_left_them(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = lived()
    _, reign, state = load(monkeypatch, messages(*writer.rows.items()), END)
    journal = writer.written[-1].journal
    assert journal is not None
    assert reign.journal == journal_digest(journal[1])
    assert reign.state == state.value == decode_journal(journal[1]).state


def test_a_deployment_that_was_moved_here_begins_a_chain_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first state is what the rows say that were written for it."""
    rows = {key: value for key, value in lived().rows.items() if b'"positions"' not in key}
    _, reign, state = load(monkeypatch, messages(*rows.items()), END)
    assert (reign.journal, reign.state) == ("", "")
    assert state.value == StateHash.of(rows.items()).value


def test_a_state_that_has_lost_a_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some rows nothing else would tell: the history of a workflow, the memory of a run that has ended."""
    rows = lived().rows
    for key in rows:
        if b'"positions"' not in key:
            left = {other: value for other, value in rows.items() if other != key}
            with pytest.raises(StateUnreadable, match=r"partition 0: its \d+ rows are not those|contradict"):
                load(monkeypatch, messages(*left.items()), END)


def test_a_state_in_which_somebody_has_changed_or_added_a_row_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, history = lived().rows, HistoryRecord("acme", "other", count=1, mean_fp=1 << 16)
    added = rows | {encode_key(0, row_key(history)): encode(history)}
    key = next(key for key in rows if b'"flow"' in key)
    flow = decode(decode_key(key)[1], rows[key])
    assert isinstance(flow, FlowRecord)
    changed = rows | {key: encode(replace(flow, deficit=flow.deficit + 1))}
    for wrong in (added, changed):
        with pytest.raises(StateUnreadable, match="rows are not those that were written"):
            load(monkeypatch, messages(*wrong.items()), END)


def test_what_another_version_of_the_core_has_counted_is_not_held_against_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have written them in other forms."""
    rows = mended(lived().rows, core=VERSION + 1, state="f" * 32)
    assert load(monkeypatch, messages(*rows.items()), END).positions.core == VERSION + 1


def test_rows_that_are_none_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StateUnreadable):
        load(monkeypatch, messages((b"not a key", b"x")), END)


def test_an_input_that_was_made_anew_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records would all lie below the position, and be passed over as applied."""
    with pytest.raises(StateUnreadable, match="ends at 10, but everything up to 20 was applied"):
        load(monkeypatch, messages(positions({"requests": 19})), END)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN])
def test_a_broker_that_restarts_is_waited_for(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    reign = load(monkeypatch, [FakeMessage(error=KafkaError(code, "down"))], END).positions
    assert reign.epoch == 1


def test_any_other_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    error = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, "no such offset")
    with pytest.raises(FairstreamError, match="no such offset"):
        load(monkeypatch, [FakeMessage(error=error)], END)


def test_silence_ends_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_SILENCE_S", -1.0)
    monkeypatch.setattr(loading, "_PATIENCE_S", -1.0)
    with pytest.raises(Unavailable, match="nothing came"):
        load(monkeypatch)


def test_a_load_that_is_interrupted_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(partition, "_SILENCE_S", -1.0)
    monkeypatch.setattr(loading, "_RETRY_S", 0.0)
    reign = load(monkeypatch, [], messages(positions({"requests": 4})), [], [*messages(positions({})), *END]).positions
    assert reign == PositionsRecord(epoch=5, applied={}, partitions=COUNTS)
    assert caplog.text.count("streams.app.load_interrupted") == 2


@pytest.mark.parametrize("done", [0, 0.5, 1.5])
def test_a_load_is_broken_off_when_the_shard_is_closed(monkeypatch: pytest.MonkeyPatch, done: float) -> None:
    """Before it reads, while it does, and while it builds: a million rows take longer than a process has to end."""
    rows = list(lived().rows.items())
    monkeypatch.setattr(loading, "_LOOK_EVERY", 1)
    left = [False] * int(done * len(rows))
    with pytest.raises(OwnershipLost, match="closed while it is loaded"):
        load(monkeypatch, messages(*rows), END, should_stop=lambda: not left or left.pop())
    assert left == []


def test_closing_is_not_asked_about_at_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [False]
    load(monkeypatch, messages(*lived().rows.items()), END, should_stop=answers.pop)
    assert answers == []


@pytest.mark.parametrize(
    ("row", "error", "way_out"),
    [
        (MovedRecord("runs-b.", 5), DeploymentMoved, "has moved to 5 shard.s. under the prefix 'runs-b.'"),
        (FillingRecord("runs-a.", 3), ConfigError, "fairstream migrate shards 1 --prefix runs-a. --to runs."),
    ],
)
def test_a_deployment_that_has_moved_or_is_not_all_there_is_not_served(
    row: MovedRecord | FillingRecord, error: type[ConfigError], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = messages(*lived().rows.items(), (encode_key(0, row_key(row)), encode(row)))
    with pytest.raises(error, match=way_out):
        load(monkeypatch, written, END)


def test_what_took_too_long_to_read_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka forgets deletions after a while: a row that was seen before may be gone, and nothing said so."""
    monkeypatch.setattr(loading, "_READ_S", -1.0)
    monkeypatch.setattr(loading, "_PATIENCE_S", -1.0)
    with pytest.raises(Unavailable, match=r"runs\.state, partition 0: not read within"):
        load(monkeypatch, messages(*lived().rows.items()), END)


def test_the_time_to_read_is_well_within_the_time_that_deletions_are_kept() -> None:
    [state] = (topic for topic in TOPICS if topic.name == "state")
    assert int(state.configs["delete.retention.ms"]) >= 2 * 1000 * loading._READ_S


def test_a_state_topic_that_is_another_and_empty_is_refused_to_the_process_that_had_the_shard() -> None:
    known: dict[int, str] = {}

    def make(state_id: str, rows: dict[bytes, bytes]) -> Loaded:
        ids = {"requests": "r", "completions": "c", "state": state_id}
        kafka = KafkaSettings(servers="nowhere:9092")
        topic = StateTopic(kafka, NAMES, 0, COUNTS, Shard, topic_ids=lambda: ids, known=known)
        return topic.made_of(rows, ENDS.__getitem__)

    assert make("old", {}).positions.epoch == 1
    with pytest.raises(StateUnreadable, match="made anew under its owner"):
        make("new", {})
    with pytest.raises(StateUnreadable, match="made anew under its owner"):
        make("new", {})  # asking again does not make it right
    known.clear()  # the next process
    assert make("new", {}).positions.epoch == 1
