"""Rows as bytes: a JSON array that begins with the form's version, and after it, for a run, its body as it is.

    [1,"summarise","default",1041,1200,null,null,3,60000,1764000000000,0]
    {"payload":{"text":"..."}}

The array is written on one line, so the first line feed, if there is one, ends it: bodies of any bytes survive
without being escaped, and a takeover does not parse them.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Any, Final

import msgspec

from streams.core.policy import Policy
from streams.core.policy_check import parse_policy, policy_document
from streams.core.records import Key
from streams.errors import StateUnreadable
from streams.rows.forms import FORMS, Form
from streams.rows.positions import Row

_encode: Final = msgspec.json.Encoder().encode  # see `keys`
_END: Final = b"\n"


class _Codec:
    """One form, worked out once. A value's types are checked while it is read."""

    def __init__(self, form: Form) -> None:
        types = [dict[str, Any] if kind is Policy else kind for kind in form.value.values()]
        shape: Any = GenericAlias(tuple, (int, *types))
        order = [*form.key, None, *form.value] + [form.body] * (form.body is not None)
        self.form = form
        self.begins = b"[%d," % form.version
        self._decoder: msgspec.json.Decoder[tuple[Any, ...]] = msgspec.json.Decoder(shape)
        self._get = attrgetter(*form.value)
        # A field that this version lacks is a later one: it stands at the end of its record, and has a default.
        self._arrange = itemgetter(*(order.index(each.name) for each in fields(form.record) if each.name in order))
        self._numbers = [index for index, kind in enumerate(form.key.values()) if kind is int]
        self._policy = list(form.value).index("policy") + 1 if "policy" in form.value else None

    def encode(self, row: Any) -> bytes:
        values = (self.form.version, *self._get(row))
        if self._policy is not None:
            values = _replaced(values, self._policy, policy_document(values[self._policy]))
        head = _encode(values)
        return head + _END + getattr(row, self.form.body) if self.form.body else head

    def decode(self, key: Key, data: bytes) -> Row:
        parts: tuple[Any, ...] = key[1:]
        if len(parts) != len(self.form.key):
            raise StateUnreadable(f"a row's key has {len(parts)} parts instead of {len(self.form.key)}: {key}")
        for index in self._numbers:
            parts = _replaced(parts, index, _number(parts[index]))
        if self.form.body:
            head, _, body = data.partition(_END)
            values = (*parts, *self._decoder.decode(head), body)
        else:
            values = (*parts, *self._decoder.decode(data))
        if self._policy is not None:
            values = _replaced(values, self._policy, parse_policy(values[self._policy]))
        row: Row = self.form.record(*self._arrange(values))
        return row


_WRITERS: Final[dict[type, _Codec]] = {form.record: _Codec(form) for form in FORMS}  # the last version of a kind wins
_READERS: Final = {(codec.form.kind, b"%d" % codec.form.version): codec for codec in map(_Codec, FORMS)}


def encode(row: Row) -> bytes:
    """Return the value of a row, in the newest form of its kind. Its key is `encode_key(shard, row_key(row))`."""
    codec = _WRITERS.get(type(row))
    if codec is None:  # the core's living form of a record: the same row
        codec = _WRITERS[type(row)] = next(_WRITERS[base] for base in type(row).__mro__ if base in _WRITERS)
    return codec.encode(row)


def canonical(row: Row, data: bytes) -> bytes:
    """Return the value of a row in the newest form of its kind; `data` is how it was found."""
    return data if data.startswith(_WRITERS[type(row)].begins) else encode(row)


def decode(key: Key, data: bytes) -> Row:
    """Return the row that `key` and `data` hold, whichever form it was written in.

    Raises `StateUnreadable` for a kind or version that is not known here, and for bytes that are no row.
    """
    version = data[1 : data.find(b",")]
    codec = _READERS.get((key[0], version))
    if codec is None:
        raise _unknown(key, version)
    try:
        return codec.decode(key, data)
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError and PolicyInvalid are ValueErrors
        raise StateUnreadable(f"the row {key} cannot be read: {error}: {data[:80]!r}") from error


def _number(text: str) -> int:
    """Read a number in a key. Raises `ValueError` for one written otherwise than here: two keys would be one row."""
    number = int(text)
    if str(number) != text:
        raise ValueError(f"{text!r} is not how a number is written in a key")
    return number


def _replaced(values: tuple[Any, ...], index: int, value: object) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _unknown(key: Key, version: bytes) -> StateUnreadable:
    known = [form.version for form in FORMS if form.kind == key[0]]
    if not known:
        return StateUnreadable(f"a row of unknown kind {key[0]!r}; was it written by a newer fairstream?")
    if version.isdigit() and int(version) > max(known):
        return StateUnreadable(
            f"the row {key} was written by a newer fairstream (version {int(version)} of its form; {max(known)} is "
            "known here); run that one, or a later one"
        )
    return StateUnreadable(f"the row {key} does not begin with the version of its form: {version[:20]!r}")
