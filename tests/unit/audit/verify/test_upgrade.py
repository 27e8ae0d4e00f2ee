"""A journal that was begun by a fairstream of before there was a chain, and gone on with by this one."""

from __future__ import annotations

from typing import Final

import orjson

from streams.audit.recording import MemoryRecording
from tests.unit.audit.verify.tampered import SHARD, check, journal, recording
from tests.unit.audit.verify.tampering import altered, mended, records

OLD: Final = 10  # records
NEW_FIELDS: Final = ("core", "state", "previous", "policies", "unread")


def upgraded() -> MemoryRecording:
    """The first record of the chain names none before it: the positions that it went on from had no digest."""
    own = records(recording(), "journal", SHARD)
    old = []
    for each in own[:OLD]:
        document = orjson.loads(each.value or b"")
        value = orjson.dumps({name: part for name, part in document.items() if name not in NEW_FIELDS})
        old.append(each._replace(value=value))
    chained = mended(recording().replaced({("journal", SHARD): own[OLD:]}), SHARD)
    return chained.replaced({("journal", SHARD): [*old, *records(chained, "journal", SHARD)]})


def chain_problems(given: MemoryRecording) -> list[int | None]:
    return [each.step for each in check(given).problems if each.check == "chain"]


def test_a_chain_may_begin_after_records_of_before_there_was_one() -> None:
    assert chain_problems(upgraded()) == []


def test_a_chain_does_not_begin_twice() -> None:
    begun_again = altered(recording(), "journal", SHARD, OLD, lambda document: document.update(previous=""))
    step = journal()[OLD]["step"]
    assert chain_problems(begun_again) == [step, step + 1]
