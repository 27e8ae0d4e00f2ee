"""Status: a view read back is the view that was shown."""

from __future__ import annotations

from dataclasses import fields

import orjson
import pytest

from streams.core.snapshot import FlowView, ShardView
from streams.errors import BadRecord
from streams.wire import Status, decode_status, encode_flow_status, encode_shard_status
from streams.wire.schema import load_schema
from tests.unit.wire.avro_values import assert_conforms


def shard_view() -> ShardView:
    numbers = {each.name: 10 + index for index, each in enumerate(fields(ShardView))}
    return ShardView(**{**numbers, "shard": 3, "now_ms": 1_000, "policy_name": "default", "window_tokens": None})  # type: ignore[arg-type]


def flow_view(tenant: str = "acme") -> FlowView:
    numbers = {each.name: -10 + index for index, each in enumerate(fields(FlowView))}
    words = {"tenant": tenant, "class_": "default", "plan": None, "state": "active"}
    return FlowView(**{**numbers, **words})  # type: ignore[arg-type]


def test_a_shard() -> None:
    key, value = encode_shard_status(shard_view())
    assert_conforms(value, "status")
    assert key == b"[3]"
    assert decode_status(value) == Status(3, 1_000, shard_view())


def test_a_flow() -> None:
    key, value = encode_flow_status(flow_view(), shard=3, at_ms=1_000)
    assert_conforms(value, "status")
    assert key == b'[3,"default","acme"]'
    assert decode_status(value) == Status(3, 1_000, flow_view())


def test_no_two_flows_share_a_key() -> None:
    keys = {encode_flow_status(flow_view(tenant), 3, 0)[0] for tenant in ('a","b', "a", 'a"', "3", "é")}
    assert len(keys) == 5


@pytest.mark.parametrize(("name", "view"), [("whole", ShardView), ("flow", FlowView)])
def test_the_schema_has_the_fields_of_the_view(name: str, view: type[ShardView | FlowView]) -> None:
    union = next(spec for spec in load_schema("status")["fields"] if spec["name"] == name)["type"]
    assert [spec["name"] for spec in union[1]["fields"]] == [each.name.rstrip("_") for each in fields(view)]


def test_a_status_of_nothing_is_refused() -> None:
    with pytest.raises(BadRecord, match="whole"):
        decode_status(orjson.dumps({"shard": 3, "at_ms": 0}))
