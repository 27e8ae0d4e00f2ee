"""A checkpoint's records: their bytes, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import StateUnreadable
from streams.rows.checkpoint import FORM, Digest, Foot, Head, Rows, decode_part, decode_rows, encode_part, encode_rows

FOOT = Foot(FORM, "c1", 2, 1_041, 1_764_000_000_000, 3, 17, 2, 40, "ab", "[3,1]", 900, 200)


def test_bytes_as_they_lie_in_topics() -> None:
    assert encode_part(Head(FORM, "c1", 2, 1_764_000_000_000)) == b'["head",1,"c1",2,1764000000000]'
    assert encode_rows("c1", [(b"k", b"v\nw"), (b"gone", None)]) == b'["rows",1,"c1",[1,3,4,-1]]\nkv\nwgone'
    foot = b'["foot",1,"c1",2,1041,1764000000000,3,17,2,40,"ab","[3,1]",900,200]'
    assert encode_part(FOOT) == foot
    assert decode_part(foot) == FOOT
    assert decode_part(foot[:-1] + b',"of a later version"]') == FOOT


@given(st.lists(st.tuples(st.binary(), st.none() | st.binary())))
def test_rows_of_any_bytes_survive(pairs: list[tuple[bytes, bytes | None]]) -> None:
    value = encode_rows("c1", pairs)
    part = decode_part(value)
    assert isinstance(part, Rows)
    assert list(decode_rows(part, value)) == pairs


@pytest.mark.parametrize("value", [None, b"", b"{}", b'["head"]', b'["tail",1,"c1"]', b'["head",1,"c1","2",3]'])
def test_what_is_no_part_of_one_is_refused(value: bytes | None) -> None:
    with pytest.raises(StateUnreadable, match="no part of a checkpoint"):
        decode_part(value)


def test_what_a_newer_version_wrote_is_refused_as_such() -> None:
    with pytest.raises(StateUnreadable, match=r"c1 was written by a newer fairstream \(version 2"):
        decode_part(b'["head",2,"c1",2,1764000000000]')


@pytest.mark.parametrize("sizes", [[1], [1, 2], [1, 1, 1, 1], [-1, 3], [4, -2]])
def test_sizes_that_are_not_those_of_the_rows_are_refused(sizes: list[int]) -> None:
    value = b"%s\nkv" % str(["rows", 1, "c1", sizes]).replace("'", '"').encode()
    part = decode_part(value)
    assert isinstance(part, Rows)
    with pytest.raises(StateUnreadable, match="c1 has a chunk"):
        list(decode_rows(part, value))


def test_the_digest_goes_by_the_order() -> None:
    digests = []
    for order in ([b"a", b"b"], [b"b", b"a"]):
        digest = Digest()
        for each in order:
            digest.add(each)
        digests.append(digest.value)
    assert len({*digests}) == 2
    assert {*map(len, digests)} == {32}
