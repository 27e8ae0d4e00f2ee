"""The hash of a state: of its rows alone, however they came to be there."""

from __future__ import annotations

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from streams.core.records import HistoryRecord, ShardRecord
from streams.rows import PositionsRecord, StateHash, canonical, decode, encode, encode_key

keys = st.integers(0, 5).map(lambda number: encode_key(0, ("run", "acme", str(number))))
changes = st.lists(st.tuples(keys, st.none() | st.binary(max_size=3)), max_size=30)


def test_no_rows() -> None:
    assert StateHash().value == "0" * 32


def test_it_is_the_sum_of_the_hashes_of_the_rows() -> None:
    rows = {b'[0,"a"]': b"[1]", b'[0,"b"]': b"[2]", b'[0,"c"]': b"[3]"}
    parts = [int.from_bytes(blake2b(key + value, digest_size=16).digest(), "big") for key, value in rows.items()]
    assert StateHash.of(rows.items()).value == f"{sum(parts) % 2**128:032x}"


@given(changes)
def test_how_the_rows_came_to_be_there_does_not_matter(history: list[tuple[bytes, bytes | None]]) -> None:
    rows: dict[bytes, bytes] = {}
    for key, value in history:
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
    lived = StateHash()
    lived.apply(history)
    loaded = StateHash.of(sorted(rows.items(), reverse=True))
    assert (lived.value, len(lived)) == (loaded.value, len(loaded)) == (loaded.value, len(rows))


@given(st.lists(st.tuples(keys, st.binary(max_size=3)), min_size=1, unique_by=lambda row: row[0]), st.data())
def test_any_row_that_is_another_makes_it_another(rows: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    before = StateHash.of(rows).value
    place = data.draw(st.integers(0, len(rows) - 1))
    key, value = rows[place]
    others = rows[:place] + rows[place + 1 :]
    assert StateHash.of(others).value != before
    assert StateHash.of([*others, (key, value + b"!")]).value != before
    assert StateHash.of([*others, (encode_key(1, ("run",)), value)]).value != before


def test_a_row_in_an_older_form_counts_as_in_the_newest() -> None:
    old = b'[1,2,{"requests":41},{"requests":4}]'
    row = decode(("positions",), old)
    assert canonical(row, old) == encode(row) == encode(PositionsRecord(2, {"requests": 41}, {"requests": 4}))


def test_a_row_in_the_newest_form_is_not_written_anew() -> None:
    for row in (ShardRecord(3, 4), HistoryRecord("acme", "w", 9, ratios={-3: 2})):
        data = encode(row)
        assert canonical(row, data) is data
