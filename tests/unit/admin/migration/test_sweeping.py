"""Unread inputs are copied once each, whenever the copying is killed; and the proof tells if they were not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.admin.migration import sweeping, writing
from streams.admin.migration.copying import MAX_HEADER_BYTES, MAX_KEY_BYTES, MOVED_FROM
from streams.admin.migration.proving import prove_inputs
from streams.admin.migration.sides import ShardRows
from streams.admin.migration.sweeping import Sweep
from streams.errors import BadRecord
from streams.rows import MovedRecord, PositionsRecord, decode
from streams.transactions import Out
from streams.wire import MAX_VALUE_BYTES, decode_request, encode_completion, encode_request, partition_for
from tests.unit.admin.migration.fakes import NEW, OLD, Crash, FakeKafka

READ = 2  # inputs of each partition that the old shard has applied


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> FakeKafka:
    """Five requests and a completion of each of two shards; one request can't be read."""
    monkeypatch.setattr(writing, "RECORDS", 2)
    made = FakeKafka(monkeypatch)
    for shard in range(OLD.shards):
        for number in range(5):
            tenant = f"t{shard}{number}"
            value = encode_request(tenant=tenant, run_id="r", workflow="w")
            made.partitions["a.requests", shard].append(
                Out("a.requests", shard, tenant.encode(), value, 1_000 + number)
            )
        value = encode_completion(tenant="t", run_id="r", attempt=1, status="succeeded")
        made.partitions["a.completions", shard].append(Out("a.completions", shard, b"t", value))
    made.partitions["a.requests", 1][4] = Out("a.requests", 1, None, b"\xff", 1_004, (("x", b"y"),))
    return made


def rows() -> list[ShardRows]:
    return [ShardRows(positions=PositionsRecord(1, {"requests": READ - 1})) for _ in range(OLD.shards)]


def begun() -> list[MovedRecord]:
    return [MovedRecord("b.", NEW.shards, {"requests": READ - 1}) for _ in range(OLD.shards)]


def sweep(kafka: FakeKafka, moved: list[MovedRecord]) -> sweeping.Swept:
    writer: Any = kafka
    return Sweep(OLD, NEW, moved, writer).once(lambda _done: None)


def kept(kafka: FakeKafka) -> list[MovedRecord]:
    """What the old state partitions say."""
    moved = begun()
    for shard in range(OLD.shards):
        for record in kafka.partitions["a.state", shard]:
            assert record.value is not None
            row = decode(("moved",), record.value)
            assert isinstance(row, MovedRecord)
            moved[shard] = row
    return moved


def origin(copy: Out) -> str:
    value = dict(copy.headers)[MOVED_FROM]
    assert isinstance(value, bytes)
    return value.decode()


def copies(kafka: FakeKafka) -> list[Out]:
    return [each for place, records in kafka.partitions.items() if place[0].startswith("b.") for each in records]


def test_what_was_not_read_is_copied_as_it_is_to_its_tenants_partition(kafka: FakeKafka) -> None:
    swept = sweep(kafka, begun())
    assert sum(swept.copied.values()) == len(copies(kafka)) == 2 * (5 - READ) + 2
    for copy in copies(kafka):
        assert copy.headers[-1][0] == MOVED_FROM
        if copy.value == b"\xff":
            assert (copy.partition, copy.headers[0], copy.timestamp_ms) == (1, ("x", b"y"), 1_004)
        else:
            assert copy.key is not None
            assert copy.partition == partition_for(copy.key.decode(), NEW.shards)
    assert [line for line in prove_inputs(OLD, rows(), swept.moved, NEW) if not line.equal] == []


@pytest.mark.parametrize("crash_at", range(6))
def test_killed_before_any_transaction_it_goes_on_where_it_was(kafka: FakeKafka, crash_at: int) -> None:
    kafka.crash_at = crash_at
    with pytest.raises(Crash):
        sweep(kafka, begun())
    kafka.crash_at = None
    swept = sweep(kafka, kept(kafka))
    assert kept(kafka) == swept.moved
    lines = prove_inputs(OLD, rows(), swept.moved, NEW)
    assert [(line.what, line.before, line.after, line.equal) for line in lines] == [
        ("unread requests", 6, 6, True),
        ("unread completions", 2, 2, True),
    ]
    assert not sweep(kafka, kept(kafka)).copied, "nothing has come since"


def test_what_retention_has_deleted_is_told(kafka: FakeKafka) -> None:
    kafka.first["a.requests", 0] = 4
    swept = sweep(kafka, begun())
    assert swept.expired == {("requests", 0): 2}
    assert not sweep(kafka, kept(kafka)).expired, "each is told once"
    assert all(line.equal for line in prove_inputs(OLD, rows(), swept.moved, NEW))
    kafka.first["a.requests", 0] = 5
    assert all(line.equal for line in prove_inputs(OLD, rows(), swept.moved, NEW)[1:])


def test_a_copy_that_is_missing_or_there_twice_is_found(kafka: FakeKafka) -> None:
    swept = sweep(kafka, begun())
    place = next(place for place, records in kafka.partitions.items() if place[0] == "b.requests" and records)
    kafka.partitions[place].append(kafka.partitions[place][0])
    kafka.partitions["b.completions", partition_for("t", NEW.shards)].pop()
    requests, completions = prove_inputs(OLD, rows(), swept.moved, NEW)
    assert (requests.before, requests.after, len(requests.differing)) == (6, 7, 1)
    assert (completions.before, completions.after, completions.equal) == (2, 1, False)


def test_a_whole_partition_that_retention_has_deleted_is_told_once(kafka: FakeKafka) -> None:
    kafka.first["a.requests", 0] = len(kafka.partitions["a.requests", 0])
    assert sweep(kafka, begun()).expired == {("requests", 0): 3}
    assert not sweep(kafka, kept(kafka)).expired


@pytest.mark.parametrize(
    ("key", "headers", "kept_key", "kept_headers"),
    [
        (b"k" * MAX_KEY_BYTES, (("h", b"x" * 30_000),), b"k" * MAX_KEY_BYTES, (("h", b"x" * 30_000),)),
        (b"k", (("h", b"x" * MAX_HEADER_BYTES),), b"k", ()),
        ("x€".encode() * MAX_KEY_BYTES, (), "x€".encode() * (MAX_KEY_BYTES // 4), ()),
        (b"k" * MAX_KEY_BYTES + b"\xff", (), b"\xff" + b"k" * (MAX_KEY_BYTES - 1), ()),
        (None, None, None, ()),
    ],
)
def test_a_copy_fits_whatever_the_original_was_compressed_from(
    kafka: FakeKafka, key: bytes | None, headers: Any, kept_key: bytes | None, kept_headers: Any
) -> None:
    """Otherwise one record would hold up the migration for ever, with both sides closed."""
    kafka.partitions.clear()
    kafka.partitions["a.requests", 1] = [Out("a.requests", 1, key, b"x" * 5_000_000, 1, headers)]
    swept = sweep(kafka, [replace(each, swept={}) for each in begun()])
    [copy] = copies(kafka)
    assert (copy.key, len(copy.value or b""), copy.headers[:-1]) == (kept_key, MAX_VALUE_BYTES + 1, kept_headers)
    with pytest.raises(BadRecord, match="at most"):
        decode_request(None, copy.value, 0, 0)
    assert copy.size() < 1_048_588 - 1_000
    assert all(line.equal for line in prove_inputs(OLD, [ShardRows(), ShardRows()], swept.moved, NEW))


@pytest.mark.parametrize(
    ("made_up", "unreadable", "told"),
    [
        ({3: 10**9}, {}, [2, 3, 4]),  # far beyond the end: itself refused, the next not passed over
        ({3: 0}, {}, [0, 2, 4]),
        ({}, {3: 3}, [2, 3, 4]),
        ({}, {2: 1, 3: 1, 4: 1}, [2, 3, 4]),  # of a batch that was read in part
    ],
)
def test_what_no_client_of_ours_can_read_holds_nothing_up(
    kafka: FakeKafka, made_up: dict[int, int], unreadable: dict[int, int], told: list[int]
) -> None:
    kafka.made_up = {("a.requests", 0, place): offset for place, offset in made_up.items()}
    kafka.unreadable = {("a.requests", 0, place): offset for place, offset in unreadable.items()}
    swept = sweep(kafka, begun())
    headers = [origin(each) for each in copies(kafka) if each.topic == "b.requests"]
    assert sorted(each for each in headers if each.startswith("a.requests:0:")) == [f"a.requests:0:{n}" for n in told]
    assert len(headers) == 2 * (5 - READ)
    lost = [each for each in copies(kafka) if each.value is None]
    assert len(lost) == len(unreadable) + sum(offset > 5 for offset in made_up.values())
    with pytest.raises(BadRecord, match="no value"):
        decode_request(None, None, 0, 0)
    assert all(line.equal for line in prove_inputs(OLD, rows(), swept.moved, NEW))
    assert not sweep(kafka, kept(kafka)).copied


@pytest.mark.parametrize("made_up", [b"", b"nowhere", b"\xff:0:1", None])
def test_a_place_of_origin_that_a_producer_made_up_proves_nothing(kafka: FakeKafka, made_up: bytes | None) -> None:
    swept = sweep(kafka, begun())
    kafka.partitions["b.requests", 0].append(Out("b.requests", 0, b"t", b"{}", 1, ((MOVED_FROM, made_up),)))
    assert all(line.equal for line in prove_inputs(OLD, rows(), swept.moved, NEW))
