"""What a step took in: read forward, no more than it names, and set aside as it was then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import Inputs
from streams.audit.replay.inputs import Wrong
from streams.core import counts, reasons
from streams.intake import UNREADABLE
from streams.wire import InputRange, JournalEntry, encode_request


def request(offset: int, size: int = 0) -> Rec:
    value = encode_request(tenant="t", run_id=f"r{offset}", workflow="w", payload="x" * size)
    return Rec(offset, 1_000, b"t", value)


def entry(
    *inputs: InputRange, unread: tuple[InputRange, ...] = (), takeover: bool = False, largest_body: int | None = None
) -> JournalEntry:
    return JournalEntry(
        0, 1, 1, takeover, 1_000, -1, inputs, (), (), (), (), {}, (), largest_body, unread=unread, core=1
    )


def requests(first: int, last: int) -> InputRange:
    return InputRange("requests", first, last)


def recording(*records: Rec) -> MemoryRecording:
    return MemoryRecording(topics={("requests", 0): [*records]})


def test_only_what_a_step_took_in_is_given_and_gaps_are_normal() -> None:
    inputs = Inputs(recording(*map(request, (0, 1, 4, 5, 9))), 0, {})
    taken = [inputs.of(entry(requests(*each))) for each in ((0, 1), (2, 4), (5, 9))]
    assert [[given.position for given in each.requests] for each in taken] == [[0, 1], [4], [5, 9]]
    assert taken[1].applied == {"requests": 4}


def test_no_more_is_read_than_the_steps_need_but_one() -> None:
    read: list[int] = []

    class Watched(MemoryRecording):
        def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
            for record in super().read(topic, partition, start, stop):
                read.append(record.offset)
                yield record

    inputs = Inputs(Watched(topics={("requests", 0): [*map(request, range(50))]}), 0, {"requests": 9})
    inputs.of(entry(requests(10, 19)))
    assert read == list(range(10, 21))
    inputs.of(entry(requests(20, 20)))
    assert read[-1] == 21


@pytest.mark.parametrize(
    ("range_", "takeover", "fine"),
    [
        (requests(4, 5), False, True),
        (requests(5, 5), False, False),
        (requests(5, 5), True, True),
        (requests(3, 5), True, False),
        (requests(4, 3), False, False),
    ],
)
def test_a_range_follows_the_one_before_unless_a_new_owner_finds_a_gap(
    range_: InputRange, takeover: bool, fine: bool
) -> None:
    there = (0, 1, 2, 3, 5, 6, 7, 8) if range_.first == 5 else range(9)  # what a new owner finds expired is gone
    inputs = Inputs(recording(*map(request, there)), 0, {})
    inputs.of(entry(requests(0, 3)))
    if fine:
        assert inputs.of(entry(range_, takeover=takeover)).requests[0].position == range_.first
    else:
        with pytest.raises(Wrong) as wrong:
            inputs.of(entry(range_, takeover=takeover))
        assert wrong.value.found == "from offset 4 on"


def test_a_record_whose_headers_nobody_can_read_is_set_aside_as_the_journal_says() -> None:
    inputs = Inputs(recording(request(0), request(1)._replace(readable=False), request(2)), 0, {})
    taken = inputs.of(entry(requests(0, 2), unread=(requests(1, 1),)))
    assert [given.position for given in taken.requests] == [0, 2]
    assert taken.counts == {UNREADABLE: 1}
    assert taken.unreadable[0].record.offset == 1


def test_a_batch_that_nobody_can_unpack_counts_as_one_record_at_its_last_offset() -> None:
    inputs = Inputs(recording(request(0), request(7)), 0, {})
    taken = inputs.of(entry(requests(0, 6), unread=(requests(1, 6),)))
    assert [given.position for given in taken.requests] == [0]
    assert taken.counts == {UNREADABLE: 1}
    assert taken.applied == {"requests": 6}
    assert [given.position for given in inputs.of(entry(requests(7, 7))).requests] == [7]


def test_what_some_client_can_read_of_such_a_batch_is_set_aside_all_the_same() -> None:
    inputs = Inputs(recording(*map(request, range(6))), 0, {})
    taken = inputs.of(entry(requests(0, 5), unread=(requests(1, 4),)))
    assert [given.position for given in taken.requests] == [0, 5]
    assert taken.counts == {UNREADABLE: 1}


def test_the_limit_of_that_time_is_applied() -> None:
    inputs = Inputs(recording(request(0, 900), request(1, 900)), 0, {})
    taken = inputs.of(entry(requests(0, 0), largest_body=500))
    assert not taken.requests
    assert [each.reason for each in taken.refused] == [reasons.TOO_LARGE]
    assert taken.counts[counts.REFUSED] == 1
    assert len(inputs.of(entry(requests(1, 1))).requests) == 1


def test_what_has_come_since_the_end_was_reached_is_read_too() -> None:
    growing = recording(*map(request, range(3)))
    inputs = Inputs(growing, 0, {})
    assert len(inputs.of(entry(requests(0, 2))).requests) == 3
    growing.topics["requests", 0] += map(request, (3, 4))
    assert [given.position for given in inputs.of(entry(requests(3, 3))).requests] == [3]
    growing.topics["requests", 0] += map(request, (5, 6))
    assert [given.position for given in inputs.of(entry(requests(4, 6))).requests] == [4, 5, 6]


@pytest.mark.parametrize(("there", "found"), [((0, 1, 2), "up to 2"), ((), "none of them"), ((9,), "none of them")])
def test_an_input_that_is_not_there(there: tuple[int, ...], found: str) -> None:
    class Whole(MemoryRecording):
        def bounds(self, topic: str, partition: int) -> tuple[int, int]:  # noqa: ARG002 - as the protocol has it
            return 0, 10

    inputs = Inputs(Whole(topics={("requests", 0): [*map(request, there)]}), 0, {})
    with pytest.raises(Wrong) as wrong:
        inputs.of(entry(requests(0, 3)))
    assert (wrong.value.field, wrong.value.recorded, wrong.value.found) == (
        "inputs.requests",
        "offsets 0 to 3",
        found,
    )


def test_a_policy_among_the_inputs_is_not_read_from_its_topic() -> None:
    taken = Inputs(recording(), 0, {}).of(entry(InputRange("policy", 3, 3)))
    assert not taken.requests
    assert not taken.completions
