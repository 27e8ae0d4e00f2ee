"""Status: a shard, its classes and its flows for people to look at (`schemas/status.avsc`)."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

import orjson

from streams.core.snapshot import ClassView, FlowView, ShardView
from streams.errors import BadRecord
from streams.wire.reading import Reader
from streams.wire.topics import MAX_MESSAGE_BYTES

_READER: Final[Reader] = Reader("status")

V = TypeVar("V", ShardView, ClassView, FlowView)


class Status(NamedTuple):
    """A record of the status topic."""

    shard: int
    at_ms: int  # the now of the shard's last step
    view: ShardView | ClassView | FlowView


class _Shape(Generic[V]):
    """A view's fields, in the names of Python (`class_`) and of the message (`class`)."""

    def __init__(self, type_: type[V]) -> None:
        self._type: Any = type_
        self._attributes = [each.name for each in fields(type_)]
        self._names = [name.removesuffix("_") for name in self._attributes]
        self._get = attrgetter(*self._attributes)

    def to_message(self, view: V) -> dict[str, Any]:
        return dict(zip(self._names, self._get(view), strict=True))

    def from_message(self, message: Any) -> V:
        view: V = self._type(**dict(zip(self._attributes, self._get(message), strict=True)))
        return view


_SHARD: Final = _Shape(ShardView)
_CLASS: Final = _Shape(ClassView)
_FLOW: Final = _Shape(FlowView)


def encode_shard_status(view: ShardView) -> tuple[bytes, bytes]:
    """Return key and value of the record that shows a shard."""
    value = {"shard": view.shard, "at_ms": view.now_ms, "whole": _SHARD.to_message(view)}
    return orjson.dumps([view.shard]), orjson.dumps(value)


def encode_class_status(view: ClassView, shard: int, at_ms: int) -> tuple[bytes, bytes]:
    """Return key and value of the record that shows a class. A record without value removes it."""
    value = {"shard": shard, "at_ms": at_ms, "class": _CLASS.to_message(view)}
    return orjson.dumps([shard, view.class_]), orjson.dumps(value)


def encode_flow_status(view: FlowView, shard: int, at_ms: int) -> tuple[bytes, bytes]:
    """Return key and value of the record that shows a tenant in a class. A record without value removes it."""
    value = {"shard": shard, "at_ms": at_ms, "flow": _FLOW.to_message(view)}
    return orjson.dumps([shard, view.class_, view.tenant]), orjson.dumps(value)


def decode_status(value: bytes | None) -> Status:
    """Return what a record of the status topic shows. Raises `BadRecord`, naming the field."""
    message = _READER.read(value, MAX_MESSAGE_BYTES)
    if message.whole is not None:
        return Status(message.shard, message.at_ms, _SHARD.from_message(message.whole))
    if message.class_ is not None:
        return Status(message.shard, message.at_ms, _CLASS.from_message(message.class_))
    if message.flow is not None:
        return Status(message.shard, message.at_ms, _FLOW.from_message(message.flow))
    raise BadRecord("missing; a status shows the whole shard, one class or one flow", field="whole")
