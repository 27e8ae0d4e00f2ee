"""The schemas: sound by two parsers, and turned into types whose limits hold."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import avro.schema
import fastavro
import msgspec
import pytest

from streams.errors import BadRecord, ConfigError
from streams.resources import schema_path
from streams.wire import decode_completion, decode_request
from streams.wire.schema import _Builder, load_schema, message_type

NAMES = sorted(path.stem for path in schema_path("").glob("*.avsc"))

REQUEST: dict[str, Any] = {"tenant": "t", "run_id": "r", "workflow": "w"}
COMPLETION: dict[str, Any] = {"tenant": "t", "run_id": "r", "attempt": 1, "status": "succeeded"}


def test_every_message_has_a_schema() -> None:
    assert set(NAMES) == {"run_request", "completion", "dispatch", "rejection", "policy", "journal", "status"}


@pytest.mark.parametrize("name", NAMES)
def test_both_parsers_take_it(name: str) -> None:
    schema = load_schema(name)
    fastavro.parse_schema(schema)
    with warnings.catch_warnings():
        # `json` and `base64` are logical types of ours; a parser that does not know them must read plain strings.
        warnings.simplefilter("ignore", avro.errors.IgnoredLogicalType)
        parsed = avro.schema.parse(json.dumps(schema))
    assert isinstance(parsed, avro.schema.RecordSchema)
    assert parsed.fullname == f"fairstream.{schema['name']}"


@pytest.mark.parametrize("name", NAMES)
def test_every_record_and_type_is_built(name: str) -> None:
    fields = [spec["name"] for spec in load_schema(name)["fields"]]
    assert list(message_type(name).__struct_encode_fields__) == fields


@pytest.mark.parametrize("name", NAMES)
def test_a_default_is_of_its_fields_type(name: str) -> None:
    # avro lets bad defaults pass.
    named: dict[str, Any] = {}  # a field may use a type that one before it defines
    for spec in load_schema(name)["fields"]:
        one = fastavro.parse_schema({"type": "record", "name": f"Of_{spec['name']}", "fields": [{**spec}]}, named)
        if "default" in spec and spec["default"] is not None:
            assert fastavro.validate({spec["name"]: spec["default"]}, one)


@pytest.mark.parametrize(
    "type_",
    [
        {"type": "array", "items": "null"},
        {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]},
        ["null", "string", "long"],
        ["string", "long"],
        "double",
        "bytes",
        "Unheard",
    ],
)
def test_types_that_are_dangerous_or_ambiguous_are_refused(type_: Any) -> None:
    schema = {"type": "record", "name": "Message", "fields": [{"name": "part", "type": type_}]}
    with pytest.raises(ConfigError) as refused:
        _Builder("test.avsc").record(schema)
    assert refused.value.source == "test.avsc"


def limits() -> Iterator[tuple[str, str, Any, Any]]:
    """Each bound in the schemas of what comes from outside: the last value inside it, and the first beyond it."""
    for name in ("run_request", "completion"):
        for spec in load_schema(name)["fields"]:
            field = spec["name"]
            if "minimum" in spec:
                yield name, field, spec["minimum"], spec["minimum"] - 1
                yield name, field, spec["maximum"], spec["maximum"] + 1
            if "minLength" in spec:
                yield name, field, "é" * spec["minLength"], "é" * (spec["minLength"] - 1)
            if "maxItems" in spec:
                full = {f"header-{index}": "x" for index in range(spec["maxItems"])}
                yield name, field, full, {**full, "more": "x"}
                yield name, field, {"k": "x" * spec["maxLength"]}, {"k": "x" * (spec["maxLength"] + 1)}
                yield name, field, {"k" * spec["maxLength"]: "x"}, {"k" * (spec["maxLength"] + 1): "x"}
            elif "maxLength" in spec and "onExcess" not in spec:
                yield name, field, "é" * spec["maxLength"], "é" * (spec["maxLength"] + 1)


@pytest.mark.parametrize(("name", "field", "inside", "outside"), list(limits()))
def test_each_limit_of_the_schema_is_enforced(name: str, field: str, inside: Any, outside: Any) -> None:
    def decode(value: Any) -> object:
        if name == "completion":
            return decode_completion(None, msgspec.json.encode({**COMPLETION, field: value}), 0)
        return decode_request(None, msgspec.json.encode({**REQUEST, field: value}), 0, 0)

    decode(inside)
    with pytest.raises(BadRecord) as refused:
        decode(outside)
    assert refused.value.field is not None
    assert refused.value.field.split("[")[0] == field


@pytest.mark.parametrize(("number", "good"), [(2**63 - 1, True), (2**63, False), (-(2**63), True)])
def test_a_long_has_64_bits(number: int, good: bool) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.policy" if good else "applied_ms"):
        msgspec.json.decode(b'{"applied_ms":%d,"author":"a","policy":{}}' % number, type=message_type("policy"))
