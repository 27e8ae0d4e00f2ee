from dataclasses import replace

import pytest

from streams.app.limits import TopicLimits
from streams.app.step import Stepper
from streams.core import VERSION
from streams.core.inputs import Undeliverable
from streams.core.policy import Policy, Window
from streams.core.shard import Shard
from streams.errors import StepAborted
from streams.intake import Reader, unread
from streams.rows import PositionsRecord, StateHash, decode, decode_key
from streams.wire import (
    AppliedPolicy,
    Assignment,
    JournalEntry,
    Revocation,
    decode_dispatch,
    decode_journal,
    decode_rejection,
    encode_cancel,
    encode_request,
    journal_digest,
)
from tests.unit.app.fakes import NAMES, FakeRecord, FakeWriter, completion, completions, load_from, request, requests


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


@pytest.fixture
def stepper(writer: FakeWriter) -> Stepper:
    return load_from(writer)()


def journal(writer: FakeWriter) -> list[JournalEntry]:
    return [decode_journal(step.journal[1]) for step in writer.written if step.journal]


def test_a_step_writes_rows_dispatches_journal_and_positions_together(stepper: Stepper, writer: FakeWriter) -> None:
    stepper.step([requests(request(0), request(1, "other"))], (), 5_000)
    (step,) = writer.written
    sent = [decode_dispatch(value) for _, value in step.dispatches]
    assert [key for key, _ in step.dispatches] == [b"run-0", b"run-1"]
    assert all(isinstance(each, Assignment) and (each.shard, each.step, each.epoch) == (0, 1, 1) for each in sent)
    assert [each.seq for each in sent] == [1, 2]
    assert step.journal is not None
    key, value = step.journal
    entry = decode_journal(value)
    assert key == b"0"
    assert (entry.step, entry.epoch, entry.takeover, entry.now_ms) == (1, 1, True, 5_000)
    assert [(each.topic, each.first, each.last) for each in entry.inputs] == [("requests", 0, 1)]
    assert [each.run_id for each in entry.decisions] == ["run-0", "run-1"]
    assert decode_key(step.positions[0]) == (0, ("positions",))
    assert decode(("positions",), step.positions[1]) == PositionsRecord(
        epoch=1,
        applied={"requests": 1},
        partitions={"requests": 1, "completions": 1},
        journal=journal_digest(value),
        core=VERSION,
        state=entry.state,
    )


def test_inputs_are_applied_policy_first_then_completions_then_requests(stepper: Stepper, writer: FakeWriter) -> None:
    one = AppliedPolicy(7, "ann", 500, Policy(window=Window(runs=1)))
    stepper.step([requests(request(0))], [one], 1_000)
    # The completion frees the only place, so the request behind it in arrival is served in the same step.
    stepper.step([requests(request(1)), completions(completion(0, "run-0"))], (), 2_000)
    entry = decode_journal(writer.written[1].journal[1] if writer.written[1].journal else None)
    assert [each.topic for each in entry.inputs] == ["completions", "requests"]
    assert [each.run_id for each in entry.settlements] == ["run-0"]
    assert [each.run_id for each in entry.decisions] == ["run-1"]
    assert not entry.takeover
    assert entry.policy_version == 7


def test_a_record_that_comes_again_changes_nothing(stepper: Stepper, writer: FakeWriter) -> None:
    stepper.step([requests(request(0))], (), 1_000)
    stepper.step([requests(request(0))], (), 1_001)
    assert writer.written[1].dispatches == []
    assert writer.written[1].rejections == []  # not even as a duplicate
    assert stepper.positions.applied == {"requests": 0}


def test_refusals_say_where_the_record_stands(stepper: Stepper, writer: FakeWriter) -> None:
    again = FakeRecord(1, request(0).value)
    stepper.step([requests(request(0), again, FakeRecord(2, b"{", b"k" * 5_000))], (), 1_000)
    rejections = writer.written[0].rejections
    duplicate, unreadable = (decode_rejection(value) for _, value in rejections)
    assert [key for key, _ in rejections] == [b"acme", b"k" * 1_024]
    assert (duplicate.reason, duplicate.position) == ("duplicate", ("runs.requests", 0, 1))
    assert (unreadable.reason, unreadable.position) == ("invalid", ("runs.requests", 0, 2))
    assert (unreadable.original, unreadable.step, unreadable.at_ms) == (b"{", 1, 1_000)


def test_revokes_stand_among_the_dispatches_in_order_of_sequence(stepper: Stepper, writer: FakeWriter) -> None:
    stepper.step([requests(request(0))], (), 1_000)
    cancel = FakeRecord(1, encode_cancel(tenant="acme", run_id="run-0"))
    stepper.step([requests(cancel, request(2))], (), 2_000)
    sent = [decode_dispatch(value) for _, value in writer.written[1].dispatches]
    assert [each.seq for each in sent] == [2, 3]
    assert {type(each) for each in sent} == {Assignment, Revocation}


def test_a_step_that_is_not_written_leaves_the_positions_alone(stepper: Stepper, writer: FakeWriter) -> None:
    writer.failures.append(StepAborted())
    with pytest.raises(StepAborted):
        stepper.step([requests(request(0))], (), 1_000)
    assert stepper.positions.applied == {}
    assert writer.written == []


def test_a_new_reign_announces_itself_until_a_step_of_it_is_written(writer: FakeWriter) -> None:
    load_from(writer)().step([requests(request(0))], (), 1_000)
    second = load_from(writer)()
    writer.failures.append(StepAborted())
    with pytest.raises(StepAborted):
        second.step([], (), 2_000)
    third = load_from(writer)()
    third.step([], (), 3_000)
    third.step([], (), 4_000)
    entries = [decode_journal(step.journal[1]) for step in writer.written if step.journal]
    assert [(entry.step, entry.epoch, entry.takeover) for entry in entries] == [
        (1, 1, True),
        (2, 2, True),
        (3, 2, False),
    ]


def test_what_replay_cannot_find_elsewhere_is_in_the_journal(stepper: Stepper, writer: FakeWriter) -> None:
    """The policy topic is compacted, and no client can read what a mark stands for."""
    stated = [AppliedPolicy(offset, "ann", 500 + offset, Policy(quantum=offset)) for offset in (7, 9)]
    headless = replace(request(1), headers=unread.mark(unread.HEADERS, "not UTF-8"))
    rest = replace(request(8), headers=unread.mark(unread.BATCH, "snappy it is not"))
    stepper.step([requests(request(0), headless, request(2), FakeRecord(3, b"{"), rest)], stated, 1_000)
    entry = journal(writer)[0]
    assert entry.policies == tuple(stated)
    assert entry.unread == (("requests", 1, 1), ("requests", 4, 8))
    assert entry.counts["unreadable"] == 3


def test_each_record_names_the_one_before_and_the_positions_name_the_last(writer: FakeWriter) -> None:
    first = load_from(writer)()
    first.step([requests(request(0))], (), 1_000)
    first.step([requests(request(1))], (), 1_001)
    writer.failures.append(StepAborted())
    with pytest.raises(StepAborted):
        first.step([requests(request(2), request(3))], (), 1_002)
    second = load_from(writer)()  # it knows nothing but the rows
    second.confirm()
    second.step([requests(request(2))], (), 1_003)
    values = [step.journal[1] for step in writer.written if step.journal]
    assert [entry.previous for entry in journal(writer)] == ["", *map(journal_digest, values[:-1])]
    assert second.positions.journal == journal_digest(values[-1])


def test_the_state_of_each_record_is_that_of_the_rows(writer: FakeWriter) -> None:
    stepper = load_from(writer)()
    for offset in range(3):
        stepper.step([requests(request(offset)), completions(completion(offset, f"run-{offset - 1}"))], (), offset)
        rows = {key: value for key, value in writer.rows.items() if b'"positions"' not in key}
        assert journal(writer)[-1].state == StateHash.of(rows.items()).value == stepper.positions.state
    assert len({entry.state for entry in journal(writer)}) == 3


def test_to_confirm_is_to_write_the_positions_and_nothing_else(stepper: Stepper, writer: FakeWriter) -> None:
    stepper.step([requests(request(0))], (), 1_000)
    stepper.confirm()
    confirmed = writer.written[1]
    assert confirmed.positions == writer.written[0].positions
    assert (confirmed.rows, confirmed.dispatches, confirmed.rejections, confirmed.journal) == ([], [], [], None)


def limited(writer: FakeWriter, **stated: int) -> Stepper:
    """A stepper whose topics take less than ours."""
    limits = TopicLimits(NAMES, lambda: {getattr(NAMES, topic): most for topic, most in stated.items()})
    limits.refresh()
    reader = Reader(NAMES, 0, 1, limits)
    positions = PositionsRecord(1, {}, {"requests": 1, "completions": 1})
    given = [Undeliverable("acme", "unheard-of", 200_000, 100_000)]
    return Stepper(Shard(0, 1), positions, writer, reader, shard=0, state=StateHash(), undeliverable=given)


def large(offset: int, run_id: str) -> FakeRecord:
    return FakeRecord(offset, encode_request(tenant="acme", run_id=run_id, workflow="w", payload="x" * 150_000))


def test_what_is_undeliverable_is_an_input_of_the_first_step_and_in_its_journal(writer: FakeWriter) -> None:
    writer.failures.append(StepAborted())
    stepper = limited(writer)
    with pytest.raises(StepAborted):
        stepper.step([], (), 1_000)
    stepper.step([], (), 1_000)
    stepper.step([], (), 1_001)
    first, second = (decode_journal(step.journal[1]) for step in writer.written if step.journal)
    assert first.undeliverable == (Undeliverable("acme", "unheard-of", 200_000, 100_000),)
    assert first.counts == {"unknown": 1}
    assert second.undeliverable == ()


def test_a_run_refused_at_the_door_is_in_the_journal_and_the_journal_says_by_which_rule(writer: FakeWriter) -> None:
    limited(writer, dispatch=100_000).step([requests(large(0, "big"), request(1))], (), 1_000)
    (step,) = writer.written
    entry = decode_journal(step.journal[1] if step.journal else None)
    assert entry.largest_body == 90_272
    assert [(each.run_id, each.reason, each.position) for each in entry.rejections] == [("big", "too_large", 0)]
    assert [each.run_id for each in entry.decisions] == ["run-1"]
    assert entry.counts["refused.too_large"] == 1
    refusal = decode_rejection(step.rejections[0][1])
    assert (refusal.reason, refusal.limit, refusal.left_out) == ("too_large", 90_272, 0)
    assert len(refusal.payload_json) == 150_002


def test_a_rejection_that_would_not_fit_goes_without_the_bytes(writer: FakeWriter) -> None:
    bad = FakeRecord(2, b"{" * 200_000, b"k" * 100_000)
    limited(writer, rejected=100_000).step([requests(large(0, "one"), large(1, "one"), bad)], (), 1_000)
    rejections = writer.written[0].rejections
    assert max(len(key or b"") + len(value) for key, value in rejections) < 5_000
    duplicate, unreadable = (decode_rejection(value) for _, value in rejections)
    assert (duplicate.run_id, duplicate.payload_json, duplicate.left_out) == ("one", b"", 150_014)
    assert (unreadable.original, unreadable.original_key, unreadable.original_size) == (None, None, 200_000)
    assert (duplicate.position.offset, unreadable.position.offset) == (1, 2)
