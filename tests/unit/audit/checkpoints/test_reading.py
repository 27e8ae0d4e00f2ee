"""Finding checkpoints, and refusing those that are not what was written."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest

from streams.audit.checkpoints import (
    TOPIC,
    before_first_step,
    feet,
    latest_before,
    of_state,
    open_checkpoint,
    prove,
)
from streams.audit.checkpoints.proving import state_of
from streams.audit.recording import MemoryRecording, Rec
from streams.core.shard import Shard
from streams.errors import CheckpointWrong
from streams.rows import encode_key
from streams.rows.checkpoint import Digest, Foot, Rows, decode_part, decode_rows, encode_part, encode_rows
from streams.wire import decode_journal
from tests.checkpointed import append, ends_of_steps, take, values
from tests.recorded import record

SHARD = 1


@pytest.fixture(scope="module")
def recorded() -> MemoryRecording:
    return record(5, ticks=60)


@pytest.fixture(scope="module")
def taken(recorded: MemoryRecording) -> MemoryRecording:
    """Three of them: early, in the middle, at the end."""
    ends = ends_of_steps(recorded, SHARD)
    for end in (ends[3], ends[len(ends) // 2], None):
        recorded = take(recorded, SHARD, end)
    return recorded


def steps(recording: MemoryRecording) -> list[int]:
    return [foot.step for _, foot in feet(recording, SHARD)]


def test_the_state_is_that_after_the_step_and_the_journal_says_so(taken: MemoryRecording) -> None:
    journal = {
        entry.step: entry for entry in map(decode_journal, (each.value for each in taken.read("journal", SHARD)))
    }
    found = [*feet(taken, SHARD)]
    assert [foot.step for _, foot in found] == sorted((foot.step for _, foot in found), reverse=True)
    assert len({foot.step for _, foot in found}) == 3
    for offset, foot in found:
        checkpoint = open_checkpoint(taken, offset, foot)
        assert checkpoint.positions is not None
        assert prove(taken, checkpoint)
        assert state_of(checkpoint) == journal[checkpoint.step].state == checkpoint.positions.state
        assert checkpoint.now_ms == journal[checkpoint.step].now_ms
        core = Shard.load(SHARD, taken.shards, checkpoint.records())
        assert core.snapshot().shard.step == checkpoint.step


def test_the_one_before_a_step_or_a_time_is_found(taken: MemoryRecording) -> None:
    (last, _), (middle, foot), (first, _) = feet(taken, SHARD)

    def at(**what: int) -> int | None:
        found = latest_before(taken, SHARD, **what)
        return None if found is None else found.offset

    assert at() == last
    assert at(step=foot.step) == at(step=foot.step + 1) == middle
    assert at(step=foot.step - 1) == first
    assert at(at_ms=foot.now_ms) == middle
    assert at(at_ms=foot.now_ms - 1) == first
    assert at(step=1) is None


def test_without_the_topic_there_is_none(recorded: MemoryRecording) -> None:
    assert latest_before(recorded, SHARD) is None
    assert latest_before(recorded.replaced({(TOPIC, SHARD): []}), SHARD) is None


def test_one_that_was_given_up_is_none(taken: MemoryRecording) -> None:
    before = steps(taken)
    there = [*taken.read(TOPIC, SHARD)]
    *unfinished, _ = values(taken, SHARD, len(there))
    assert steps(append(taken, SHARD, unfinished)) == before
    # Nor is one whose head is gone by retention: something of it is missing.
    shortened = taken.replaced({(TOPIC, SHARD): there[1:]})
    assert steps(shortened) == before
    whole = append(append(taken, SHARD, unfinished), SHARD, [*values(taken, SHARD, len(there) + len(unfinished))])
    assert len(steps(whole)) == len(before) + 1, "what comes after it is found"


def test_two_that_are_written_at_once_do_not_mix(recorded: MemoryRecording) -> None:
    end = ends_of_steps(recorded, SHARD)[5]
    one, other = [*values(recorded, SHARD, 0, end)], [*values(recorded, SHARD, 1)]
    assert len(one) == len(other) == 3
    mixed = append(recorded, SHARD, [value for pair in zip(one, other, strict=True) for value in pair])
    found = latest_before(mixed, SHARD)
    assert found is not None
    assert found.foot.head == 1
    assert prove(mixed, found)


def test_what_is_no_part_of_one_is_passed_over(taken: MemoryRecording) -> None:
    assert steps(append(taken, SHARD, [b"somebody's", b""])) == steps(taken)


@dataclass
class Counted(MemoryRecording):
    """One that remembers what was read."""

    offsets: list[int] = field(default_factory=list)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None):  # type: ignore[no-untyped-def] # noqa: ANN201
        for each in super().read(topic, partition, start, stop):
            self.offsets.append(each.offset)
            yield each


def test_feet_are_found_without_reading_what_lies_between(taken: MemoryRecording) -> None:
    there = [*taken.read(TOPIC, SHARD)]
    spread = [each._replace(offset=each.offset * 1_000) for each in there]
    far = [each for each in there if isinstance(decode_part(each.value), Rows)]
    assert len(far) == 3
    counted = Counted(taken.prefix, taken.shards, {(TOPIC, SHARD): [*there[:-1], *spread[-1:]]})
    assert len([*feet(counted, SHARD)][0:1]) == 1
    assert counted.offsets[0] == spread[-1].offset
    counted = Counted(taken.prefix, taken.shards, {(TOPIC, SHARD): there})
    assert len([*feet(counted, SHARD)]) == 3
    assert counted.offsets == [8, 5, 2], "one record for each"


def test_what_a_shard_began_with_is_what_a_migration_left(recorded: MemoryRecording, taken: MemoryRecording) -> None:
    assert before_first_step(recorded, SHARD) is None
    assert before_first_step(taken, SHARD) is None, "its first checkpoint came later"
    rows = [each for each in recorded.read("state", SHARD) if b'"policy"' in (each.key or b"")][:1]
    moved = recorded.replaced({("state", SHARD): rows})  # a shard that has never stepped has a policy, say
    twice = take(take(moved, SHARD, filled=True), SHARD, filled=True)
    later = append(twice, SHARD, [*values(recorded, SHARD, 6)])
    for each in (twice, later):
        found = before_first_step(each, SHARD)
        assert found is not None
        assert (found.step, found.positions, found.offset) == (0, None, 5), "the last one: one was written again"
        assert found.rows == {row.key: row.value for row in rows}


def test_the_state_as_it_stands_is_one_too(taken: MemoryRecording) -> None:
    standing, last = of_state(taken, SHARD), latest_before(taken, SHARD)
    assert standing is not None
    assert last is not None
    assert (standing.rows, standing.positions, standing.step) == (last.rows, last.positions, last.step)
    assert prove(taken, standing)
    assert str(standing) == f"the state of shard 1 after step {last.step}"
    assert of_state(taken.replaced({("state", SHARD): []}), SHARD) is None


# --- somebody has changed it


def damaged(taken: MemoryRecording, offset: int, value: bytes) -> MemoryRecording:
    there = [each._replace(value=value) if each.offset == offset else each for each in taken.read(TOPIC, SHARD)]
    return taken.replaced({(TOPIC, SHARD): there})


def value_at(taken: MemoryRecording, offset: int) -> bytes:
    (found,) = taken.read(TOPIC, SHARD, offset, offset + 1)
    assert found.value is not None
    return found.value


def test_a_flipped_byte_is_found(taken: MemoryRecording) -> None:
    value = value_at(taken, 7)
    wrong = damaged(taken, 7, value[:-3] + bytes([value[-3] ^ 1]) + value[-2:])
    with pytest.raises(CheckpointWrong, match=r"shard 1 after step \d+ \(offset 8\): its foot says 1 chunks of digest"):
        latest_before(wrong, SHARD)
    (_, foot), *_ = feet(taken, SHARD)
    before = latest_before(wrong, SHARD, step=foot.step - 1)
    assert before is not None, "an earlier one is what it was"


def test_a_chunk_that_is_missing_is_found(taken: MemoryRecording) -> None:
    there = [each for each in taken.read(TOPIC, SHARD) if each.offset != 7]
    with pytest.raises(CheckpointWrong, match="there are 0 of"):
        latest_before(taken.replaced({(TOPIC, SHARD): there}), SHARD)


def test_a_chunk_cut_short_is_found(taken: MemoryRecording) -> None:
    with pytest.raises(CheckpointWrong, match=r"offset 7: .*sizes"):
        latest_before(damaged(taken, 7, value_at(taken, 7)[:-3]), SHARD)


def as_an_insider(taken: MemoryRecording, change: list[tuple[bytes, bytes | None]]) -> MemoryRecording:
    """Rows of the last checkpoint replaced or taken out, and its own digest made right again."""
    part = decode_part(value_at(taken, 7))
    assert isinstance(part, Rows)
    rows = {**dict(decode_rows(part, value_at(taken, 7))), **dict(change)}
    chunk = encode_rows(part.id, rows.items())
    (_, foot), *_ = feet(taken, SHARD)
    digest = Digest()
    digest.add(chunk)
    fitting = msgspec.structs.replace(foot, digest=digest.value, rows=len(rows))
    return damaged(damaged(taken, 7, chunk), 8, encode_part(fitting))


def test_what_an_insider_has_made_right_again_does_not_fit_the_journal(taken: MemoryRecording) -> None:
    checkpoint = latest_before(taken, SHARD)
    assert checkpoint is not None
    flow = next(key for key in checkpoint.rows if b'"flow"' in key)
    for change in [(flow, checkpoint.rows[flow].replace(b"[1,", b"[1, ", 1))], [(flow, None)]:
        altered = latest_before(as_an_insider(taken, [*change] if isinstance(change, list) else [change]), SHARD)
        assert altered is not None
        with pytest.raises(CheckpointWrong, match="the journal says"):
            prove(taken, altered)


def test_rows_of_another_shard_are_found(taken: MemoryRecording) -> None:
    checkpoint = latest_before(taken, SHARD)
    assert checkpoint is not None
    wrong = as_an_insider(taken, [(encode_key(0, ("shard",)), checkpoint.rows[encode_key(1, ("shard",))])])
    altered = latest_before(wrong, SHARD)
    assert altered is not None
    with pytest.raises(CheckpointWrong, match="not one of its rows"):
        prove(wrong, altered)
    nonsense = latest_before(as_an_insider(taken, [(encode_key(SHARD, ("shard",)), b"[1,")]), SHARD)
    assert nonsense is not None
    with pytest.raises(CheckpointWrong, match="cannot be read"):
        prove(taken, nonsense)


def test_a_journal_that_was_altered_beside_it_is_found(taken: MemoryRecording) -> None:
    checkpoint = latest_before(taken, SHARD)
    assert checkpoint is not None
    journal = [*taken.read("journal", SHARD)]
    last = journal[-1]
    altered = taken.replaced({("journal", SHARD): [*journal[:-1], last._replace(value=(last.value or b"") + b" ")]})
    with pytest.raises(CheckpointWrong, match="it had"):
        prove(altered, checkpoint)


def test_a_journal_that_can_not_tell_proves_nothing(taken: MemoryRecording) -> None:
    checkpoint = latest_before(taken, SHARD)
    assert checkpoint is not None
    journal = [*taken.read("journal", SHARD)]
    assert not prove(taken.replaced({("journal", SHARD): []}), checkpoint)
    assert not prove(taken.replaced({("journal", SHARD): journal[:-1]}), checkpoint)
    first = latest_before(taken, SHARD, step=checkpoint.step - 1)
    assert first is not None
    later = [each for each in journal if decode_journal(each.value).step > first.step]
    assert not prove(taken.replaced({("journal", SHARD): later}), first), "the record was deleted by retention"
    noise = [*journal[:-1], Rec(journal[-1].offset, 0, b"1", b"{")]
    assert not prove(taken.replaced({("journal", SHARD): noise}), checkpoint)


@pytest.mark.parametrize("rows", [0, 1, 10_000])
def test_a_foot_that_says_another_number_of_rows_is_found(rows: int) -> None:
    """Else one without a row could claim to be what a migration has left."""
    recording = take(record(1, ticks=20), 0)
    own = [*recording.read(TOPIC, 0)]
    foot = decode_part(own[-1].value)
    assert isinstance(foot, Foot)
    own[-1] = own[-1]._replace(value=encode_part(msgspec.structs.replace(foot, rows=rows)))
    with pytest.raises(CheckpointWrong, match=f"says {rows} rows, there are {foot.rows}"):
        latest_before(recording.replaced({(TOPIC, 0): own}), 0)
