"""Marks of records that could not be read whole, where their headers would be.

The consumer hands on such a record instead of failing, and the intake refuses it by what its mark says. No header that
could be read has one of these names: UTF-8 has no half of a surrogate pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.intake.records import InputRecord

HEADERS: Final = "\ud800headers"  # the record's headers are no headers; its key and value are there
BATCH: Final = "\ud800batch"  # stands for what is left of a batch, and has the offset of its last record
DAMAGED: Final = "\ud800damaged"  # not the bytes that Kafka took: its offset says nothing, and it is to be read again

_FIELDS: Final = {HEADERS: "headers", BATCH: "batch"}


def mark(kind: str, why: str) -> tuple[tuple[str, bytes]]:
    """Return the headers of a record that could not be read."""
    return ((kind, why.encode()),)


def damage(records: Sequence[InputRecord]) -> str | None:
    """Return what is wrong if these records only say that the bytes are not those that Kafka took."""
    headers = records[0].headers if len(records) == 1 else ()
    return headers[0][1].decode() if headers and headers[0][0] == DAMAGED else None


def check(record: InputRecord) -> None:
    """Raise `BadRecord` if the record is marked, with what could not be read of it as the field."""
    if record.headers:
        kind, why = record.headers[0]
        if kind in _FIELDS:
            raise BadRecord(why.decode(), field=_FIELDS[kind])
