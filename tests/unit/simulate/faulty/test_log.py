"""The log keeps Kafka's promises of transactions, and no more."""

import pytest

from streams.errors import OwnershipLost
from streams.simulate.faulty.log import Log

HERE, THERE = ("journal", 0), ("journal", 1)


def values(log: Log, start: int = 0, most: int | None = None) -> tuple[list[bytes | None], int]:
    records, after = log.read(HERE, start, most)
    return [each.value for each in records], after


def test_what_belongs_to_no_transaction_is_seen_at_once() -> None:
    log = Log()
    log.now_ms = 7
    log.append(HERE, b"k", b"v", (("h", b"x"),))
    (record,), after = log.read(HERE, 0)
    assert (record, after) == ((0, 7, b"k", b"v", (("h", b"x"),)), 1)
    assert log.read(HERE, 1) == ([], 1)
    assert log.read(THERE, 0) == ([], 0)


def test_a_transaction_is_seen_whole_once_it_is_committed() -> None:
    log = Log()
    producer = log.fence("a")
    producer.begin()
    producer.send(HERE, None, b"1")
    producer.send(HERE, None, b"2")
    assert values(log) == ([], 0)
    producer.commit()
    assert values(log) == ([b"1", b"2"], 3)  # its marker takes an offset


def test_nothing_is_seen_behind_a_transaction_that_is_open() -> None:
    log = Log()
    producer = log.fence("a")
    log.append(HERE, None, b"before")
    producer.begin()
    producer.send(HERE, None, b"1")
    log.append(HERE, None, b"behind")
    log.append(THERE, None, b"elsewhere")
    assert values(log) == ([b"before"], 1)
    assert len(log.read(THERE, 0)[0]) == 1
    producer.commit()
    assert values(log, 1) == ([b"1", b"behind"], 4)


def test_what_is_aborted_leaves_its_offsets_unused() -> None:
    log = Log()
    producer = log.fence("a")
    producer.begin()
    producer.send(HERE, None, b"1")
    producer.abort()
    log.append(HERE, None, b"2")
    assert values(log) == ([b"2"], 3)
    assert log.read(HERE, 0)[0][0].offset == 2


def test_a_new_producer_fences_the_last_one_and_ends_what_it_left_open() -> None:
    log = Log()
    old, other = log.fence("a"), log.fence("b")
    old.begin()
    old.send(HERE, None, b"old")
    new = log.fence("a")
    assert values(log) == ([], 2)
    for act in (old.begin, old.commit, old.abort, lambda: old.send(HERE, None, b"late")):
        with pytest.raises(OwnershipLost):
            act()
    for producer in (new, other):
        producer.begin()
        producer.send(HERE, None, b"new")
        producer.commit()
    assert values(log)[0] == [b"new", b"new"]


def test_a_fetch_may_be_cut() -> None:
    log = Log()
    for number in range(3):
        log.append(HERE, None, b"%d" % number)
    assert values(log, 0, 2) == ([b"0", b"1"], 2)
    assert values(log, 2, 2) == ([b"2"], 3)


def test_a_record_may_have_a_time_of_its_own() -> None:
    log = Log()
    producer = log.fence("a")
    producer.begin()
    producer.send(HERE, None, b"1", timestamp=3)
    producer.commit()
    assert log.read(HERE, 0)[0][0].timestamp == 3


def test_compaction_leaves_the_last_of_each_key_that_readers_see() -> None:
    log = Log()
    producer = log.fence("a")
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None)):
        log.append(HERE, key, value)
    producer.begin()
    producer.send(HERE, b"a", b"aborted")
    producer.abort()
    log.append(HERE, b"c", b"4")
    producer.begin()
    producer.send(HERE, b"a", b"open")
    log.compact(HERE)
    assert values(log) == ([b"3", b"4"], 7)
    producer.commit()
    assert values(log)[0] == [b"3", b"4", b"open"]


def test_a_transaction_that_takes_too_long_is_ended_by_the_broker() -> None:
    log = Log()
    producer = log.fence("a")
    producer.begin()
    producer.send(HERE, None, b"1")
    producer.time_out()
    assert values(log) == ([], 2)
    with pytest.raises(OwnershipLost):
        producer.commit()
