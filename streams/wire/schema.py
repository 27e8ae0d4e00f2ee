"""Types built from the Avro schemas, so that a message's shape and limits are written down once.

`message_type("completion")` reads `schemas/completion.avsc` and returns a msgspec struct with the same fields:
defaults, enum symbols and limits included. Limits are plain attributes of a field in the schema, which Avro
lets pass: `minimum`, `maximum` (numbers), `minLength`, `maxLength` (characters), `maxItems` (maps and arrays).
A field with `"onExcess": "cut"` may be longer: its decoder cuts it. A field of logical type `json` holds any
JSON value and is kept as the bytes that were sent.

Only what these schemas use is supported, and what would be dangerous to decode is refused (recursive types,
arrays of null): see `_Builder`.
"""

from __future__ import annotations

import keyword
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Literal

import msgspec
import orjson

from streams.errors import ConfigError
from streams.resources import schema_path

_INT: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_ABSENT: Final = msgspec.Raw(b"")


def load_schema(name: str) -> dict[str, Any]:
    """Return `schemas/<name>.avsc` as parsed JSON."""
    schema: dict[str, Any] = orjson.loads(schema_path(f"{name}.avsc").read_bytes())
    return schema


@cache
def message_type(name: str) -> type[msgspec.Struct]:
    """Return the struct for the record in `schemas/<name>.avsc`. Raises `ConfigError` if the schema is unsupported."""
    return _Builder(f"{name}.avsc").record(load_schema(name))


def attribute_of(field: str) -> str:
    """Return the attribute that holds a field: its name, or `class_` for one that is a word of Python."""
    return f"{field}_" if keyword.iskeyword(field) else field


class _Builder:
    """Builds one schema's types. Named types may be used again after their definition, but not inside it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def record(self, schema: dict[str, Any]) -> type[msgspec.Struct]:
        name = schema["name"]
        self._open.append(name)
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        rename = {}
        for spec in schema["fields"]:
            attribute = attribute_of(spec["name"])
            rename[attribute] = spec["name"]
            fields.append(self._field(attribute, spec))
        self._open.pop()
        # gc=False: a message is a tree, so reference counting frees it; the collector need not look.
        built = msgspec.defstruct(name, fields, rename=rename, frozen=True, gc=False, kw_only=True)
        self._named[name] = built
        return built

    def _field(self, attribute: str, spec: dict[str, Any]) -> tuple[str, Any] | tuple[str, Any, Any]:
        type_ = self._type(spec["type"], spec)
        if type_ is msgspec.Raw:
            return attribute, type_, _ABSENT
        if "default" not in spec:
            return attribute, type_
        default = spec["default"]
        if isinstance(default, dict):
            return attribute, type_, msgspec.field(default_factory=dict)
        if isinstance(default, list):
            return attribute, type_, msgspec.field(default_factory=list)
        return attribute, type_, default

    def _type(self, schema: Any, spec: dict[str, Any]) -> Any:
        if isinstance(schema, list):
            return self._union(schema, spec)
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "string":
                return _text(schema, spec)
            case "int" | "long":
                low, high = _INT[kind]
                return _limited(int, ge=spec.get("minimum", low), le=spec.get("maximum", high))
            case "boolean":
                return bool
            case "enum" | "record" | "map" | "array":
                return self._composite(kind, schema, spec)
            case str() if kind in self._named and kind not in self._open:
                return self._named[kind]
        # Deep data against a recursive schema, or an array<null> with a huge count, kills some Avro decoders.
        raise ConfigError("not supported in a message", field=spec.get("name"), value=schema, source=self._source)

    def _composite(self, kind: str, schema: dict[str, Any], spec: dict[str, Any]) -> Any:
        if kind == "record":
            return self.record(schema)
        if kind == "enum":
            self._named[schema["name"]] = symbols = Literal[tuple(schema["symbols"])]
            return symbols
        limit = spec.get("maxItems")
        inner = self._type(schema["values" if kind == "map" else "items"], {"maxLength": spec.get("maxLength")})
        if kind == "array":
            return _limited(GenericAlias(list, (inner,)), max_length=limit)
        key = _limited(str, max_length=spec.get("maxLength"))
        return _limited(GenericAlias(dict, (key, inner)), max_length=limit)

    def _union(self, schema: list[Any], spec: dict[str, Any]) -> Any:
        others = [branch for branch in schema if branch != "null"]
        if len(others) != 1 or len(schema) != 2:  # noqa: PLR2004 - null and one other
            raise ConfigError(
                "a union must be of null and one type", field=spec.get("name"), value=schema, source=self._source
            )
        type_ = self._type(others[0], spec)
        return type_ if type_ is msgspec.Raw else type_ | None


def _text(schema: Any, spec: dict[str, Any]) -> Any:
    match schema.get("logicalType") if isinstance(schema, dict) else None:
        case "json":
            return msgspec.Raw
        case "base64":
            return bytes
    return _limited(str, min_length=spec.get("minLength"), max_length=_max_length(spec))


def _limited(type_: Any, **limits: Any) -> Any:
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return Annotated[type_, msgspec.Meta(**given)] if given else type_


def _max_length(spec: dict[str, Any]) -> int | None:
    limit: int | None = spec.get("maxLength")
    return None if spec.get("onExcess") == "cut" else limit


def cut_lengths(name: str) -> dict[str, int]:
    """Return the fields of a schema that are cut to a length rather than refused, with that length in characters."""
    return {spec["name"]: spec["maxLength"] for spec in load_schema(name)["fields"] if spec.get("onExcess") == "cut"}
