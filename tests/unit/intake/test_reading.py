import gc
import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.app.inbox import Batch
from streams.app.limits import TopicLimits
from streams.core.inputs import Cancel, Completion, Submit
from streams.intake import ASTRAY, FORWARDED_ON, SKIPPED, UNREADABLE, Reader, Source, unread
from streams.wire import FORWARDED, OVERHEAD_BYTES, encode_cancel, encode_request
from tests.unit.app.fakes import NAMES, FakeRecord, completion, completions, request, requests, tenant_of

READER = Reader(NAMES, 0, 1)


def test_inputs_keep_their_order_and_their_offsets() -> None:
    batches = [requests(request(3), request(5)), completions(completion(1, "run-3")), requests(request(9))]
    intake = READER.read(batches, {})
    assert [each.position for each in intake.requests] == [3, 5, 9]
    assert [each.position for each in intake.completions] == [1]
    assert intake.applied == {"requests": 9, "completions": 1}
    assert intake.counts == {}


def test_every_kind_of_input_is_read() -> None:
    cancel = FakeRecord(1, encode_cancel(tenant="acme", run_id="run-0"))
    intake = READER.read([requests(request(0), cancel), completions(completion(0, "run-0"))], {})
    assert [type(each) for each in [*intake.requests, *intake.completions]] == [Submit, Cancel, Completion]
    assert isinstance(intake.requests[0], Submit)
    assert intake.requests[0].submitted_ms == 1_000


def test_what_was_applied_before_is_passed_over() -> None:
    intake = READER.read([requests(*(request(offset) for offset in range(5)))], {"requests": 2, "completions": 7})
    assert [each.position for each in intake.requests] == [3, 4]
    assert intake.applied == {"requests": 4, "completions": 7}
    assert intake.counts == {SKIPPED: 3}


def test_a_topic_of_which_nothing_came_has_no_position() -> None:
    assert READER.read([], {}).applied == {}
    assert READER.read([requests()], {}).applied == {}


def test_what_cannot_be_read_is_set_aside_and_its_neighbours_are_not() -> None:
    intake = READER.read([requests(request(0), FakeRecord(1, b"{"), FakeRecord(2, None), request(3))], {})
    assert [each.position for each in intake.requests] == [0, 3]
    assert [(each.source, each.record.offset, each.error.field) for each in intake.unreadable] == [
        (Source.REQUESTS, 1, "value"),
        (Source.REQUESTS, 2, "value"),
    ]
    assert intake.applied == {"requests": 3}
    assert intake.counts == {UNREADABLE: 2}


@pytest.mark.parametrize("source", list(Source))
def test_what_the_consumer_could_not_read_is_set_aside_by_its_mark(source: Source) -> None:
    value = {Source.REQUESTS: request(0).value, Source.COMPLETIONS: completion(0, "run").value}[source]
    garbled = FakeRecord(0, value, headers=unread.mark(unread.HEADERS, "no text"))
    batch = FakeRecord(4, None, None, headers=unread.mark(unread.BATCH, "offsets 1 to 4"))
    intake = READER.read([Batch(source, [garbled, batch], 1)], {})
    assert [(record, str(error)) for _, record, error in intake.unreadable] == [
        (garbled, "headers: no text"),
        (batch, "batch: offsets 1 to 4"),
    ]
    assert (intake.applied, intake.counts) == ({source.value: 4}, {UNREADABLE: 2})
    assert not intake.requests
    assert not intake.completions


@pytest.mark.parametrize("source", list(Source))
def test_a_record_of_another_shard_is_forwarded_as_it_is(source: Source) -> None:
    tenant = tenant_of(1, 2)
    record = request(4, tenant) if source is Source.REQUESTS else completion(4, "run", tenant)
    batch = requests(record) if source is Source.REQUESTS else completions(record)
    intake = Reader(NAMES, 0, 2).read([batch], {})
    assert [*intake.requests, *intake.completions] == []
    (forward,) = intake.forwards
    topic = f"runs.{source.value}"
    assert (forward.topic, forward.partition) == (topic, 1)
    assert (forward.key, forward.value, forward.timestamp_ms) == (tenant.encode(), record.value, 1_000)
    assert forward.headers == [(FORWARDED, f"{topic}:0:4".encode())]
    assert intake.applied == {source.value: 4}
    assert intake.counts == {FORWARDED_ON: 1}


def test_a_record_is_forwarded_only_once() -> None:
    astray = request(4, tenant_of(1, 2))
    marked = FakeRecord(4, astray.value, headers=(("other", b""), (FORWARDED, b"runs.requests:1:9")))
    intake = Reader(NAMES, 0, 2).read([requests(marked)], {})
    assert [*intake.forwards, *intake.requests] == []
    ((source, record, error),) = [(each.source, each.record, each.error) for each in intake.unreadable]
    assert (source, record, error.field) == (Source.REQUESTS, marked, "headers")
    assert intake.counts == {ASTRAY: 1}
    assert intake.applied == {"requests": 4}


def test_a_forged_mark_gives_a_tenant_no_second_shard() -> None:
    """Else a tenant that marks its runs itself would be queued in every shard, and get a share of each."""
    tenant = tenant_of(1, 2)
    forged = [(FORWARDED, b"x"), (FORWARDED, b"")]
    for shard in range(2):
        record = FakeRecord(0, request(0, tenant).value, headers=tuple(forged))
        intake = Reader(NAMES, shard, 2).read([requests(record)], {})
        assert len(intake.requests) == (shard == 1)


@given(st.binary(max_size=200), st.none() | st.binary(max_size=20), st.integers(-(2**63), 2**63 - 1))
def test_no_record_whatever_it_holds_stops_the_shard(value: bytes, key: bytes | None, timestamp: int) -> None:
    for batch in (requests, completions):
        intake = READER.read([batch(FakeRecord(0, value, key, timestamp))], {})
        assert len(intake.unreadable) + len(intake.requests) + len(intake.completions) == 1


def test_what_the_topics_do_not_tell_is_noted_for_whoever_replays_it() -> None:
    headless = replace(request(5), headers=unread.mark(unread.HEADERS, "not UTF-8"))
    rest = replace(request(19), headers=unread.mark(unread.BATCH, "not snappy"))
    astray = replace(request(20, tenant_of(1, 2)), headers=((FORWARDED, b"here"),))
    tenant = tenant_of(0, 2)
    batch = requests(request(3, tenant), headless, FakeRecord(7, b"{"), request(8, tenant), rest, astray)
    intake = Reader(NAMES, 0, 2).read([batch], {})
    assert intake.unread == [("requests", 5, 5), ("requests", 9, 19)]
    assert [each.record.offset for each in intake.unreadable] == [5, 7, 19, 20], "the others can be seen to be so"
    assert READER.read([requests(rest)], {"requests": 2}).unread == [("requests", 3, 19)]
    assert READER.read([requests(rest)], {"requests": 19}).unread == []


def with_limits(shards: int = 1, **stated: int) -> Reader:
    limits = TopicLimits(NAMES, lambda: {getattr(NAMES, topic): most for topic, most in stated.items()})
    limits.refresh()
    return Reader(NAMES, 0, shards, limits)


def test_a_run_that_no_topic_takes_is_refused_at_the_door_and_its_neighbours_are_not() -> None:
    value = encode_request(tenant="acme", run_id="big", workflow="w", payload="x" * 100_000)
    cancel = encode_cancel(tenant="acme", run_id="big")
    batch = requests(request(0), FakeRecord(1, value), FakeRecord(2, cancel), request(3))
    intake = with_limits(dispatch=100_000).read([batch], {})
    assert [each.position for each in intake.requests] == [0, 2, 3]
    (refused,) = intake.refused
    assert (refused.tenant, refused.run_id, refused.reason, refused.position) == ("acme", "big", "too_large", 1)
    assert (refused.limit, refused.value, refused.retry_after_ms) == (90_272, 100_014, None)
    assert intake.counts == {"refused": 1, "refused.too_large": 1}
    assert not with_limits().read([batch], {}).refused


@pytest.mark.parametrize("source", list(Source))
def test_what_is_too_large_to_be_forwarded_is_set_aside(source: Source) -> None:
    tenant = tenant_of(1, 2)
    record = request(4, tenant) if source is Source.REQUESTS else completion(4, "run", tenant)
    batch = requests(record) if source is Source.REQUESTS else completions(record)
    intake = with_limits(2, **{source.value: OVERHEAD_BYTES + len(record.value or b"")}).read([batch], {})
    assert intake.forwards == []
    assert [(each.record.offset, each.error.field) for each in intake.unreadable] == [(4, "value")]
    assert intake.counts == {UNREADABLE: 1}
    assert intake.unread == [(source.value, 4, 4)], "the limit is nowhere in the topics"
    assert len(with_limits(2, **{source.value: OVERHEAD_BYTES + 4_096}).read([batch], {}).forwards) == 1


@pytest.mark.parametrize(
    "value",
    [b"{", b"[]", b'{"tenant":5}', b'{"run_id":"r"}', b"\x00", None, b"[" * 1_000, b'{"tenant":"a","run_id":"r"}'],
    ids=lambda value: repr(value)[:20],
)
def test_an_unreadable_record_is_let_go_of_without_a_collection(value: bytes | None) -> None:
    """The collector comes seldom, and until then an error kept all of its batch alive, as did every other one."""
    gc.collect()
    gc.disable()
    try:
        record = FakeRecord(0, value)
        watched = weakref.ref(record)
        intake = READER.read([requests(record)], {})
        assert len(intake.unreadable) == 1
        del intake, record
        assert watched() is None
    finally:
        gc.enable()
