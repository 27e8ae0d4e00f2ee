"""The reader's words: each of msgspec's messages becomes field, value and sentence."""

from __future__ import annotations

import pytest

from streams.errors import BadRecord
from streams.wire.reading import Reader

READER = Reader("rejection")
GOOD = b'"reason":"x","detail":"x","shard":0,"step":0,"at_ms":0'


@pytest.mark.parametrize(
    ("value", "field", "shown"),
    [
        (b'{%s,"position":{"topic":"t","partition":0}}', "position.offset", None),
        (b'{%s,"position":{"topic":"t","partition":"0","offset":1}}', "position.partition", "0"),
        (b'{%s,"position":3}', "position", 3),
        (b"[1]", "value", [1]),
        (b'"text"', "value", "text"),
    ],
)
def test_the_path_of_a_wrong_field(value: bytes, field: str, shown: object) -> None:
    with pytest.raises(BadRecord) as refused:
        READER.read(value.replace(b"%s", GOOD))
    assert (refused.value.field, refused.value.value) == (field, shown)


def test_a_value_that_only_the_checker_can_read_is_refused_without_it() -> None:
    # orjson reads no lone UTF-8 continuation bytes, so the wrong value cannot be looked up; the field still is.
    with pytest.raises(BadRecord) as refused:
        READER.read(b'{"other":"\xff","reason":5}')
    assert (refused.value.field, refused.value.value) == ("reason", None)
