"""Status: a view read back is the view that was shown."""

from __future__ import annotations

import re
from dataclasses import fields

import orjson
import pytest

from streams.core import waiting
from streams.core.snapshot import ClassView, FlowView, ShardView
from streams.core.waiting import SKIPS, WAITS
from streams.errors import BadRecord
from streams.wire import Status, decode_status, encode_class_status, encode_flow_status, encode_shard_status
from streams.wire.schema import load_schema
from tests.unit.wire.avro_values import assert_conforms


def shard_view() -> ShardView:
    numbers = {each.name: 10 + index for index, each in enumerate(fields(ShardView))}
    others = {"shard": 3, "now_ms": 1_000, "policy_name": "default", "window_tokens": None, "stuck": True}
    return ShardView(**{**numbers, **others, "waiting_for": waiting.CAPS})  # type: ignore[arg-type]


def class_view() -> ClassView:
    numbers = {each.name: -10 + index for index, each in enumerate(fields(ClassView))}
    return ClassView(**{**numbers, "class_": "batch"})  # type: ignore[arg-type]


def flow_view(tenant: str = "acme") -> FlowView:
    numbers = {each.name: -10 + index for index, each in enumerate(fields(FlowView))}
    words = {"tenant": tenant, "class_": "default", "plan": None, "group": "g", "state": "active", "skip": waiting.TURN}
    return FlowView(**{**numbers, **words})  # type: ignore[arg-type]


def test_a_shard() -> None:
    key, value = encode_shard_status(shard_view())
    assert_conforms(value, "status")
    assert key == b"[3]"
    assert decode_status(value) == Status(3, 1_000, shard_view())


def test_a_class() -> None:
    key, value = encode_class_status(class_view(), shard=3, at_ms=1_000)
    assert_conforms(value, "status")
    assert key == b'[3,"batch"]'
    assert decode_status(value) == Status(3, 1_000, class_view())


def test_a_flow() -> None:
    key, value = encode_flow_status(flow_view(), shard=3, at_ms=1_000)
    assert_conforms(value, "status")
    assert key == b'[3,"default","acme"]'
    assert decode_status(value) == Status(3, 1_000, flow_view())


def test_no_two_flows_share_a_key() -> None:
    keys = {encode_flow_status(flow_view(tenant), 3, 0)[0] for tenant in ('a","b', "a", 'a"', "3", "é")}
    assert len(keys) == 5


@pytest.mark.parametrize(("name", "view"), [("whole", ShardView), ("class", ClassView), ("flow", FlowView)])
def test_the_schema_has_the_fields_of_the_view(name: str, view: type[ShardView | ClassView | FlowView]) -> None:
    union = next(spec for spec in load_schema("status")["fields"] if spec["name"] == name)["type"]
    assert [spec["name"] for spec in union[1]["fields"]] == [each.name.rstrip("_") for each in fields(view)]


@pytest.mark.parametrize(("name", "field", "words"), [("whole", "waiting_for", WAITS), ("flow", "skip", SKIPS)])
def test_the_schema_says_every_word(name: str, field: str, words: tuple[str, ...]) -> None:
    union = next(spec for spec in load_schema("status")["fields"] if spec["name"] == name)["type"]
    (doc,) = [spec["doc"] for spec in union[1]["fields"] if spec["name"] == field]
    assert set(words) - {waiting.NOTHING} <= set(re.findall(r"\w+", doc.partition(": ")[2]))


def test_a_status_of_nothing_is_refused() -> None:
    with pytest.raises(BadRecord, match="whole"):
        decode_status(orjson.dumps({"shard": 3, "at_ms": 0}))
