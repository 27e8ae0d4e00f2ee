r"""A record as a line of JSON, and back.

    {"offset":17,"timestamp":1764000000000,"key":"acme","value":"{\"run_id\":...}","headers":[["traced","1"]]}

A key, value or header that is no UTF-8 stands as {"base64": "..."}. So a person can read what is there (`zcat FILE | jq
'.value | fromjson'`), and not a byte is lost.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec
import orjson

from streams.audit.recording import Rec


class _Base64(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    base64: bytes  # decoded by msgspec


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    offset: int
    timestamp: int
    key: str | _Base64 | None
    value: str | _Base64 | None
    headers: list[tuple[str, str | _Base64]] = []
    readable: bool = True


_DECODER: Final = msgspec.json.Decoder(_Line)


def to_line(record: Rec) -> bytes:
    """Return the record's line, its line feed included."""
    line: dict[str, object] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
    }
    if record.headers:
        line["headers"] = [(name, _text(value)) for name, value in record.headers]
    if not record.readable:
        line["readable"] = False
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def from_line(line: bytes) -> Rec:
    """Return the record of a line. Raises `ValueError`."""
    read = _DECODER.decode(line)
    headers = tuple((name, _bytes(value) or b"") for name, value in read.headers) if read.headers else ()
    return Rec(read.offset, read.timestamp, _bytes(read.key), _bytes(read.value), headers, read.readable)


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _bytes(text: str | _Base64 | None) -> bytes | None:
    if text is None:
        return None
    return text.encode() if isinstance(text, str) else text.base64
