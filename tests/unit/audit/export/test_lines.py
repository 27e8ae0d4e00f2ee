"""A record as a line, whatever its bytes are."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audit.export.lines import from_line, to_line
from streams.audit.recording import Rec

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # a name of a header is UTF-8, or nobody's
RECORDS = st.builds(
    Rec,
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**62),
    st.none() | st.binary(max_size=60),
    st.none() | st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace")),
    st.lists(st.tuples(NAMES, st.binary(max_size=20)), max_size=3).map(tuple),
    st.booleans(),
)


@given(RECORDS)
def test_not_a_byte_is_lost(record: Rec) -> None:
    line = to_line(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line.splitlines()) == 1
    assert from_line(line) == record


def test_a_person_can_read_it() -> None:
    line = to_line(Rec(3, 1_000, b"acme", b'{"run_id":"r1"}', (("traced", b"1"),)))
    assert line == (
        b'{"offset":3,"timestamp":1000,"key":"acme","value":"{\\"run_id\\":\\"r1\\"}","headers":[["traced","1"]]}\n'
    )
    assert orjson.loads(to_line(Rec(3, 1_000, None, b"\xff", (), readable=False))) == {
        "offset": 3,
        "timestamp": 1_000,
        "key": None,
        "value": {"base64": "/w=="},
        "readable": False,
    }


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"offset":"3","timestamp":1,"key":null,"value":null}',
        b'{"offset":3,"timestamp":1,"key":null,"value":{"base64":"?"}}',
        b'{"offset":3,"timestamp":1,"key":null,"value":null,"more":1}',
    ],
)
def test_what_is_no_record(line: bytes) -> None:
    with pytest.raises(ValueError):
        from_line(line)
