"""Writing a checkpoint, against a Kafka of lists: where it ends, and what it does not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pytest

from streams.admin import checkpointing as module
from streams.admin.checkpointing import Last, last_of, write_checkpoint
from streams.errors import Unavailable
from streams.kafka import KafkaSettings
from streams.rows.checkpoint import Foot, Head, Rows, decode_part, decode_rows, encode_part

KAFKA: Final = KafkaSettings(servers="nowhere:1")
SHARD: Final = 2


class Message(NamedTuple):
    """What is asked of a consumed record."""

    at: int
    content: bytes | None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return b'[2,"run","t","r%d"]' % self.at

    def value(self) -> bytes | None:
        return self.content

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_000 + self.at


class Kafka:
    """Topics of one shard. What stands there when its end is asked for is not all that is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ends: dict[str, tuple[int, int]] = {}
        self.records: dict[str, list[Message]] = {}
        self.written: list[bytes] = []
        monkeypatch.setattr(module, "open_reader", self.open_reader)
        monkeypatch.setattr(module, "bounds", lambda _consumer, topic, _shard: self.ends[topic.removeprefix("runs.")])
        monkeypatch.setattr(module, "read_to_end", self.read_to_end)
        monkeypatch.setattr(module, "_Sink", lambda *_: self)

    @contextmanager
    def open_reader(self, *_: object) -> Iterator[None]:
        yield None

    def read_to_end(self, _consumer: None, topic: str, shard: int, start: int = 0) -> Iterator[Message]:
        assert shard == SHARD
        yield from (each for each in self.records[topic.removeprefix("runs.")] if each.at >= start)

    def put(self, value: bytes) -> int:
        self.written.append(value)
        return 100 + len(self.written) - 1


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka(monkeypatch)
    made.ends = {"state": (0, 3), "journal": (0, 40), "checkpoints": (0, 0)}
    made.records = {"state": [Message(number, b"[1]") for number in range(5)], "checkpoints": []}
    return made


def test_what_is_written_meanwhile_is_copied_too_and_told_apart(kafka: Kafka) -> None:
    late: list[bool] = []
    foot = write_checkpoint(KAFKA, SHARD, between=late.append)
    assert late == [False, False, False, True, True]
    head, rows, last = map(decode_part, kafka.written)
    assert isinstance(head, Head)
    assert isinstance(rows, Rows)
    assert last == foot
    assert isinstance(foot, Foot)
    assert [key for key, _ in decode_rows(rows, kafka.written[1])] == [each.key() for each in kafka.records["state"]]
    assert (foot.head, foot.rows, foot.state_end) == (100, 5, 3)
    assert foot.journal_end == 38, "its last step may not show in the state yet"
    assert head.id == foot.id


def test_a_shard_without_state_has_none(kafka: Kafka) -> None:
    kafka.ends["state"] = (3, 3)
    assert write_checkpoint(KAFKA, SHARD) is None
    assert kafka.written == []


def test_a_read_that_takes_too_long_is_given_up(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka may have forgotten by then that what was read first was deleted."""
    monkeypatch.setattr(module, "_READ_S", -1.0)
    with pytest.raises(Unavailable, match=r"runs\.state, partition 2: not read within"):
        write_checkpoint(KAFKA, SHARD)
    assert [type(decode_part(each)) for each in kafka.written] == [Head], "and has no foot"


@pytest.mark.parametrize("content", [None, b"somebody's", b'["head",1,"c1",2,5]'])
def test_the_last_record_tells_when_somebody_wrote(kafka: Kafka, content: Any) -> None:
    assert last_of(KAFKA, None, SHARD) is None  # type: ignore[arg-type] # it is handed on
    kafka.ends["checkpoints"] = (5, 8)
    kafka.records["checkpoints"] = [Message(7, content)]
    assert last_of(KAFKA, None, SHARD) == Last(1_007, None)  # type: ignore[arg-type]
    foot = write_checkpoint(KAFKA, SHARD)
    assert foot is not None
    kafka.records["checkpoints"] = [Message(7, encode_part(foot))]
    assert last_of(KAFKA, None, SHARD) == Last(1_007, foot)  # type: ignore[arg-type]
