"""A copy of a state partition: what is in it, and how little of it is held."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.audit.checkpoints import Copy
from streams.audit.checkpoints.taking import CHUNK_BYTES
from streams.core.records import ShardRecord
from streams.errors import ConfigError, StateUnreadable
from streams.rows import (
    FILLING,
    MOVED,
    POSITIONS,
    FillingRecord,
    MovedRecord,
    PositionsRecord,
    encode,
    encode_key,
)
from streams.rows.checkpoint import Pair, Rows, decode_part, decode_rows

SHARD_KEY = encode_key(3, ("shard",))


def copy(*, filled: bool = False) -> Copy:
    return Copy("c1", 3, begun_ms=7, state_end=900, journal_end=40, filled=filled)


def rows_of(chunk: bytes) -> list[Pair]:
    part = decode_part(chunk)
    assert isinstance(part, Rows)
    return list(decode_rows(part, chunk))


def test_a_copy_says_which_step_it_is_of() -> None:
    taken = copy()
    row = encode(ShardRecord(shard=3, shards=4, epoch=5, step=41, now_ms=1_000))
    positions = encode(PositionsRecord(epoch=5, applied={"requests": 9}))
    (chunk,) = taken.chunks([(SHARD_KEY, b"an older one"), (encode_key(3, (POSITIONS,)), positions), (SHARD_KEY, row)])
    assert rows_of(chunk) == [(SHARD_KEY, row)], "of a row that changed in the meantime the last one is enough"
    foot = taken.foot(17)
    assert (foot.id, foot.shard, foot.head, foot.chunks, foot.rows) == ("c1", 3, 17, 1, 1)
    assert (foot.step, foot.now_ms, foot.epoch) == (41, 1_000, 5)
    assert foot.positions == positions.decode()
    assert (foot.state_end, foot.journal_end) == (900, 40)


def test_a_large_state_is_never_held_as_a_whole() -> None:
    given = 0

    def pairs() -> Iterator[Pair]:
        nonlocal given
        for number in range(4_000):
            given += 1
            yield encode_key(3, ("run", "t", str(number))), b"x" * 1_000

    taken = copy()
    most = 0
    told: list[Pair] = []
    for chunk in taken.chunks(pairs()):
        most = max(most, given - len(told))
        told += rows_of(chunk)
    assert len(told) == given == taken.foot(0).rows
    assert most * 1_000 < CHUNK_BYTES + 1_000
    assert taken.foot(0).chunks > 5


def test_what_is_deleted_again_and_again_takes_room_once() -> None:
    key = encode_key(3, ("run", "t", "r"))
    changes = [(key, value) for _ in range(2_000) for value in (b"x" * 1_000, None)]
    (chunk,) = copy().chunks(changes)
    assert rows_of(chunk) == [(key, None)]


def test_the_rows_of_a_migration_are_not_the_shards() -> None:
    taken = copy()
    moved = encode(MovedRecord("b.", 2))
    assert list(taken.chunks([(encode_key(3, (MOVED,)), moved)])) == []
    assert taken.foot(0).step == 0


def test_a_shard_that_is_being_filled_is_not_copied_unless_all_is_there() -> None:
    filling = (encode_key(3, (FILLING,)), encode(FillingRecord("a.", 1)))
    taken = copy()
    assert list(taken.chunks([filling])) == []
    with pytest.raises(ConfigError, match="migrate shards"):
        taken.foot(0)
    whole = copy(filled=True)
    assert list(whole.chunks([filling])) == []
    assert whole.foot(0).positions is None
    opened = copy()
    assert list(opened.chunks([filling, (filling[0], None)])) == []
    assert opened.foot(0).rows == 0


def test_a_shard_whose_own_row_is_none_is_refused() -> None:
    taken = copy()
    assert len(list(taken.chunks([(SHARD_KEY, b"[1,")]))) == 1
    with pytest.raises(StateUnreadable):
        taken.foot(0)
