import threading

import pytest

from streams.app import inbox as inbox_module
from streams.app.inbox import Inbox, size_of
from tests.unit.app.fakes import FakeRecord, completions, requests

LARGE = 1 << 40


def make_inbox(max_records: int = 4, max_bytes: int = LARGE) -> tuple[Inbox, list[str]]:
    heard: list[str] = []
    inbox = Inbox(max_records, max_bytes, lambda: heard.append("room"))
    inbox.reset(1)
    heard.clear()
    return inbox, heard


def records(first: int, number: int, size: int = 1) -> list[FakeRecord]:
    return [FakeRecord(offset, b"x" * size, None) for offset in range(first, first + number)]


def test_batches_come_out_in_the_order_they_went_in() -> None:
    inbox, _ = make_inbox(100)
    first, second = requests(*records(0, 2)), completions(*records(0, 1))
    assert inbox.put(first)
    assert inbox.put(second)
    assert inbox.take(100, LARGE) == [first, second]
    assert inbox.take(100, LARGE) == []


def test_a_batch_is_cut_and_its_event_comes_with_the_rest() -> None:
    inbox, _ = make_inbox(100)
    inbox.put(requests(*records(0, 5, size=3), event="event"))
    head = inbox.take(2, LARGE)
    rest = inbox.take(10, LARGE)
    assert [[record.offset for record in batch.records] for batch in head + rest] == [[0, 1], [2, 3, 4]]
    assert [batch.event for batch in head + rest] == [None, "event"]
    assert [batch.size for batch in head + rest] == [6, 9]


def test_nothing_is_taken_after_so_many_bytes() -> None:
    inbox, _ = make_inbox(100)
    for first in (0, 2, 4):
        inbox.put(requests(*records(first, 2, size=10)))
    assert len(inbox.take(100, 25)) == 2
    assert len(inbox.take(100, 1)) == 1  # never none, or a large record would stop everything


@pytest.mark.parametrize(("max_records", "max_bytes"), [(4, LARGE), (100, 4)])
def test_a_full_inbox_says_when_it_has_room_again(max_records: int, max_bytes: int) -> None:
    inbox, heard = make_inbox(max_records, max_bytes)
    full = []
    for first in (0, 3):
        inbox.put(requests(*records(first, 3)))
        full.append(inbox.full)
    for number in (1, 3, 3):
        inbox.take(number, LARGE)
        full.append(inbox.full)
    assert full == [False, True, True, False, False]
    assert heard == ["room"]


def test_a_batch_of_another_takeover_is_not_taken() -> None:
    inbox, heard = make_inbox()
    inbox.put(requests(*records(0, 9), takeover=1))
    inbox.reset(2)
    assert heard == ["room"]  # whoever waits for room must wake up and find out
    assert not inbox.full
    assert not inbox.put(requests(*records(9, 1), takeover=1))
    assert inbox.put(requests(*records(0, 1), takeover=2))
    assert len(inbox.take(10, LARGE)) == 1


def test_waiting_ends_with_a_batch_a_wake_or_the_time() -> None:
    inbox, _ = make_inbox()
    inbox.wait(0.01)
    inbox.wake()
    inbox.wait(60)  # it was woken before it began
    threading.Timer(0.05, inbox.put, [requests(*records(0, 1))]).start()
    inbox.wait(60)
    assert inbox.take(1, LARGE)


def test_keys_and_headers_are_counted_too() -> None:
    """Whoever can write may put a megabyte into either; 8,000 of them would be 8 GB."""
    record = FakeRecord(0, b"12345", b"123", headers=(("name", b"1234567"), ("n", b"")))
    assert size_of(record) == 5 + 3 + 4 + 7 + 1
    assert size_of(FakeRecord(0, None, None)) == 0


def test_a_step_takes_in_only_so_many_bytes_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports count twice, since they may be named twice; of a large value no more than the longest names."""
    monkeypatch.setattr(inbox_module, "MAX_NAMES_BYTES", 100)
    inbox, _ = make_inbox(100)
    inbox.put(completions(*records(0, 5, size=20), event="event"))
    inbox.put(requests(*records(0, 9, size=20)))
    taken = [[(batch.source.value, len(batch.records)) for batch in inbox.take(100, LARGE)] for _ in range(4)]
    assert taken == [[("completions", 3)], [("completions", 2), ("requests", 1)], [("requests", 5)], [("requests", 3)]]
    monkeypatch.setattr(inbox_module, "MAX_NAMES_BYTES", 3 * 3_060)
    inbox.put(requests(*records(0, 5, size=100_000)))
    assert [len(batch.records) for batch in inbox.take(100, LARGE)] == [3]
