"""The body of a run: what the worker gets and the core never looks into, as one JSON object in bytes.

    {"max_tokens": 4096, "payload": <any JSON value>, "headers": {"name": "text"}}

Every member may be absent, and the body of a run with none of them is empty. The payload is kept byte for
byte as the producer wrote it: it is never parsed and printed again, so large integers and number formats survive.
`splice` makes the body's members those of a message, without looking into them.
"""

from __future__ import annotations

from typing import Final

import orjson

from streams.errors import BadRecord

EMPTY: Final = b""


def pack(payload: bytes, headers: dict[str, str], max_tokens: int | None) -> bytes:
    """Return the body. `payload` is JSON text, empty for none.

    Raises `BadRecord` if the payload is not what every JSON reader can read: bad UTF-8, a number beyond a
    double's range.
    """
    members = []
    if max_tokens is not None:
        members.append(b'"max_tokens":%d' % max_tokens)
    if payload:
        check(payload)
        members.append(b'"payload":' + payload)
    if headers:
        members.append(b'"headers":' + orjson.dumps(headers))
    return b"{" + b",".join(members) + b"}" if members else EMPTY


def splice(message: bytes, body: bytes) -> bytes:
    """Return the JSON object `message`, which has members, with the members of `body` added."""
    return message[:-1] + b"," + body[1:] if body else message


def check(payload: bytes) -> None:
    """Raise `BadRecord` for what is not one JSON value, or one that not every JSON reader can read."""
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise BadRecord(f"not JSON: {error}", field="payload") from None
