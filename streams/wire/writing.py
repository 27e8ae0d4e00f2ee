"""Writes one message as JSON, or says which field cannot be written."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.errors import BadRecord


def to_json(message: Mapping[str, object]) -> bytes:
    """Return the message, without the fields that are None. Raises `BadRecord` naming what JSON cannot hold."""
    try:
        return orjson.dumps({name: part for name, part in message.items() if part is not None})
    except orjson.JSONEncodeError as error:
        raise BadRecord(f"cannot be written as JSON: {error}", field=_culprit(message)) from None


def cut(text: str | None, limit: int) -> str | None:
    """Return a text for people, of at most `limit` characters, that can be written; None for an empty one.

    Half a surrogate pair becomes a question mark: Python has them in what it could not decode (PEP 383).
    """
    return text[:limit].encode(errors="replace").decode() if text else None


def _culprit(message: Mapping[str, object]) -> str | None:
    """Name the first field that cannot be written where it stands, one level deep."""
    for name, part in message.items():
        try:
            orjson.dumps([part])
        except orjson.JSONEncodeError:
            return name
    return None
