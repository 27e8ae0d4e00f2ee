"""Holds a message against its Avro schema, by an implementation that is not ours."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import orjson

from streams.wire.schema import load_schema


def as_avro(value: bytes) -> dict[str, Any]:
    """A JSON message as Avro values: only a payload and a policy differ, which are JSON text there."""
    message: dict[str, Any] = orjson.loads(value)
    if message.get("payload") is not None:
        message["payload"] = orjson.dumps(message["payload"]).decode()
    for each in message.get("policies", ()):
        each["policy"] = orjson.dumps(each["policy"]).decode()
    return message


def assert_conforms(value: bytes, schema: str) -> None:
    """Every field is known and fits, and the message survives Avro's own encoding."""
    parsed = fastavro.parse_schema(load_schema(schema))
    message = as_avro(value)
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, parsed, message, strict_allow_default=True)
    buffer.seek(0)
    read: Any = fastavro.schemaless_reader(buffer, parsed, None)
    assert {name: part for name, part in read.items() if name in message} == message
