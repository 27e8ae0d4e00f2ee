"""Reads one JSON value against its schema, or says what is wrong with it: which field, which value."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

import msgspec
import orjson

from streams.errors import BadRecord
from streams.wire.schema import attribute_of, load_schema, message_type

# Bounds what one record can cost in memory and time before anything is known about it.
MAX_VALUE_BYTES: Final = 1_000_000

# What orjson can write, so that whatever was read can be shown. Looked at before anything else is: msgspec's own
# bound follows the depth of the caller's stack, and a decision must not (replay stands on another stack).
MAX_DEPTH: Final = 254

_MAX_WHAT: Final = 200  # characters: msgspec quotes a wrong word of an enum, however long it is
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS: Final = bytes(set(range(256)) - _STEPS.keys())

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`(?P<path>\$[^`]*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `([^`]*)`")
_UNSEEN: Final = object()


class Reader:
    """Decodes values of one schema into its struct, whose type is made at run time: `Any` to a type checker."""

    def __init__(self, schema: str) -> None:
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(message_type(schema))
        self._required: dict[str, list[str]] = {}
        for spec in load_schema(schema)["fields"]:
            if "requiredFor" in spec:
                self._required.setdefault(spec["requiredFor"], []).append(spec["name"])

    def read(self, value: bytes | None, max_bytes: int = MAX_VALUE_BYTES) -> Any:
        """Return the message, with defaults filled in. Unknown fields are passed over.

        Raises `BadRecord` naming the field and its value: no value, too large, nested too deep, not JSON, a field
        missing, of the wrong type or outside its limits.
        """
        if value is None:
            raise BadRecord("the record has no value", field="value")
        if len(value) > max_bytes:
            raise BadRecord(f"{len(value)} bytes, at most {max_bytes} are read", field="value")
        if _depth(value) > MAX_DEPTH:
            raise BadRecord(f"nested deeper than {MAX_DEPTH}", field="value")
        try:
            return self._decoder.decode(value)
        except msgspec.ValidationError as error:
            raise _explain(value, error) from None
        except msgspec.DecodeError as error:
            raise _unreadable(value, error) from None

    def require(self, message: Any, form: str) -> None:
        """Raise `BadRecord` for a field that this form of the message (`submit`, `revoke`) needs and lacks."""
        for name in self._required.get(form, ()):
            if getattr(message, attribute_of(name)) is None:
                raise BadRecord(f"missing; a {form} needs it", field=name)


def _depth(value: bytes) -> int:
    """Return how deep arrays and objects are nested in a JSON text; 0 if it has too few for more than `MAX_DEPTH`.

    In what is no JSON the depth of the part that could be is never underestimated.
    """
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return 0
    outside_strings = b"".join(value.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside_strings.translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _unreadable(value: bytes, error: Exception) -> BadRecord:
    if value[:1] == b"\x00":
        return BadRecord("Avro with a schema id (first byte 0) is not read here yet; send JSON", field="value")
    return BadRecord(f"not JSON: {error}", field="value", value=value[:80])


def _explain(value: bytes, error: msgspec.ValidationError) -> BadRecord:
    """Turn msgspec's message, which ends in a path like `$.headers[...]`, into field, value and sentence."""
    match = _AT.fullmatch(str(error))
    what, path = (match["what"], match["path"] or "$") if match else (str(error), "$")
    field = path.removeprefix("$").removeprefix(".")
    missing = _MISSING.fullmatch(what)
    if missing:
        return BadRecord("missing", field=f"{field}.{missing[1]}".removeprefix("."))
    found = _look_up(value, field)
    return BadRecord(
        what.replace("`", "")[:_MAX_WHAT], field=field or "value", value=None if found is _UNSEEN else found
    )


def _look_up(value: bytes, field: str) -> object:
    """Return what stands at a path. `_UNSEEN` where the path has a wildcard, or orjson reads the value differently."""
    try:
        found: object = orjson.loads(value)
    except orjson.JSONDecodeError:
        return _UNSEEN
    for name in filter(None, field.split(".")):
        if not isinstance(found, dict) or name not in found:
            return _UNSEEN
        found = found[name]
    return found
