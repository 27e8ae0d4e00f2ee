"""What is in a fetch: each record once and in order, with a mark where it could not be read, and never an error."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.structs import TopicPartition

from streams.app.faust_overrides import batches
from streams.app.faust_overrides.batches import Batches
from streams.intake import unread
from tests.garbled import CODECS, CRC_FROM, Garbled, Given, batch_of, signed

# Numbers of 63 bits, of more than a number may have, and one without an end.
ENDLESS = [b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 9 + b"\x7f", b"\xff" * 10]


def fetch(data: bytes, start: int = 0, aborted: Sequence[tuple[int, int]] = ()) -> tuple[list[Any], int]:
    """Return what aiokafka reads in these bytes, and where it fetches next."""
    records = fetcher.PartitionRecords(
        TopicPartition("t", 0), Batches(data), aborted, start, None, None, check_crcs=True, isolation_level=1
    )
    return list(records), records.next_fetch_offset


def kind(record: Any) -> str | None:
    return record.headers[0][0] if record.headers and record.headers[0][0].startswith("\ud800") else None


def test_consumers_are_given_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "MemoryRecords", None)
    batches.install()
    assert fetcher.MemoryRecords is Batches


@pytest.mark.parametrize("codec", CODECS)
def test_headers_that_cannot_be_read_are_marked_and_hold_up_nobody(codec: str) -> None:
    given = [Given(b"%d" % each, b"k%d" % each, [("good", None), ("x", b"1")]) for each in range(5)]
    given[2] = given[2]._replace(headers=[("good", b"1"), (Garbled("a"), b"2")])
    data = batch_of(*given, codec=codec, base_offset=10) + batch_of(Given(b"last"), codec=codec, base_offset=15)
    records, following = fetch(data)
    assert [(each.offset, each.value) for each in records] == [
        *((10 + number, b"%d" % number) for number in range(5)),
        (15, b"last"),
    ]
    assert following == 16
    assert [kind(each) for each in records] == [None, None, unread.HEADERS, None, None, None]
    assert records[1].headers == records[3].headers == (("good", None), ("x", b"1"))
    bad = records[2]
    assert (bad.key, bad.timestamp, bad.timestamp_type) == (b"k2", 1_002, 0)
    assert bad.headers[0][1].startswith(b"'utf-8' codec can't decode byte 0xff")


def test_a_fetch_may_begin_behind_what_cannot_be_read() -> None:
    data = batch_of(*(Given(b"%d" % each, headers=[(Garbled("a"), b"")] if each < 2 else []) for each in range(4)))
    for start in range(4):
        records, following = fetch(data, start)
        assert [each.offset for each in records] == list(range(start, 4))
        assert following == 4


def test_the_brokers_time_is_that_of_a_marked_record_too() -> None:
    data = bytearray(batch_of(Given(b"a", headers=[(Garbled("a"), b"")]), Given(b"b")))
    struct.pack_into(">h", data, CRC_FROM, 0x08)
    (marked, plain), _ = fetch(signed(data))
    assert kind(marked) == unread.HEADERS
    assert (marked.timestamp, marked.timestamp_type) == (plain.timestamp, plain.timestamp_type) == (1_001, 1)


@pytest.mark.parametrize("delta", [1_000_000, 0, -5])
def test_offsets_that_are_not_the_batchs_end_it(delta: int) -> None:
    """A position that followed one into the future would pass over what others file until then."""
    records, following = fetch(batch_of(Given(b"a"), Given(b"b", delta=delta), Given(b"c"), base_offset=7))
    assert [(each.offset, kind(each)) for each in records] == [(7, None), (9, unread.BATCH)]
    why = b"offsets 8 to 9 cannot be read: a record says that its offset is %d" % (7 + delta)
    assert records[1].headers[0][1] == why
    assert following == 10


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_what_is_too_large_unpacked_is_one_marked_record(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 100_000)
    fits, bursts = (batch_of(*[Given(bytes(size))] * 3, codec=codec) for size in (33_000, 34_000))
    assert len(bursts) < 10_000
    assert [kind(each) for each in fetch(fits)[0]] == [None] * 3
    (record,), following = fetch(bursts)
    assert (record.offset, kind(record), record.value, following) == (2, unread.BATCH, None, 3)
    assert b"larger than 100000 bytes" in record.headers[0][1]


def test_a_codec_that_does_not_exist_is_one_marked_record() -> None:
    data = bytearray(batch_of(Given(b"a")))
    struct.pack_into(">h", data, CRC_FROM, 5)
    (record,), _ = fetch(signed(data))
    assert record.headers[0] == (
        unread.BATCH,
        b"offsets 0 to 0 cannot be read: compressed by a codec that does not exist, number 5",
    )


def test_a_fetch_ends_when_it_has_come_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_FETCH_BYTES", 25_000)
    data = b"".join(batch_of(Given(bytes(10_000)), codec="zstd", base_offset=each) for each in range(10))
    records, following = fetch(data)
    assert [each.offset for each in records] == [0, 1, 2]
    assert following == 3


def damaged(offset: int) -> list[bytes]:
    good = batch_of(Given(b"a"), base_offset=offset)
    wrong = bytearray(good)
    wrong[-1] ^= 1
    old = bytearray(good)
    old[16] = 1
    short = good[:8] + struct.pack(">i", 3) + good[12:15]
    negative = good[:8] + struct.pack(">i", -9) + good[12:]
    return [bytes(wrong), bytes(old), short, negative]


@pytest.mark.parametrize("data", damaged(1))
def test_what_kafka_did_not_take_is_told_when_all_before_it_is_read(data: bytes) -> None:
    records, following = fetch(batch_of(Given(b"good")) + data + batch_of(Given(b"after"), base_offset=2))
    assert [each.offset for each in records] == [0]
    assert unread.damage(records) is None
    assert following == 1
    records, _ = fetch(data + batch_of(Given(b"after"), base_offset=2), following)
    assert (unread.damage(records) or "").startswith("a batch ")


def test_a_batch_that_is_cut_is_fetched_again() -> None:
    whole, cut = batch_of(Given(b"a")), batch_of(Given(b"b"), base_offset=1)
    for length in range(len(cut)):
        assert [each.value for each in fetch(whole + cut[:length])[0]] == [b"a"]
    assert not Batches(cut[:-1]).has_next()
    assert Batches(cut[:-1]).size_in_bytes() == len(cut) - 1


def test_aborted_batches_and_markers_are_passed_over() -> None:
    def transactional(attributes: int, data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(">h", changed, CRC_FROM, attributes)
        struct.pack_into(">q", changed, 43, 77)
        return signed(changed)

    aborted = transactional(0x10, batch_of(Given(b"a", headers=[(Garbled("a"), b"")])))
    marker = transactional(0x30, batch_of(Given(bytes(6), bytes(4)), base_offset=1))
    kept = transactional(0x10, batch_of(Given(b"b"), base_offset=2))
    records, following = fetch(aborted + marker + kept, aborted=[(77, 0)])
    assert [each.offset for each in records] == [2]
    assert following == 3


@pytest.mark.parametrize("codec", CODECS)
def test_no_bytes_make_it_fail(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded mutations, each with the checksum it needs to be read at all."""
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 1 << 20)  # a mapping for each would take long
    draw = random.Random(codec)
    whole = batch_of(*(Given(b"v" * 40, b"k%d" % each, [("name", b"value")]) for each in range(6)), codec=codec)
    unreadable = 0
    for _ in range(3_000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            # The batch's own offsets are the broker's.
            data[draw.randrange(61, len(data))] = draw.randrange(256)
        if draw.random() < 0.2:
            at = draw.randrange(61, len(data) - 10)
            data[at : at + 10] = draw.choice(ENDLESS)
        if draw.random() < 0.2:
            struct.pack_into(">i", data, 57, draw.choice([-1, 0, 3, 7, 1 << 30]))
        records, following = fetch(signed(data))
        offsets = [each.offset for each in records]
        assert offsets == sorted(set(offsets))
        assert set(offsets) <= set(range(6))
        assert following == 6
        unreadable += any(kind(each) for each in records)
    assert unreadable > 100
