"""Placement: the same as Kafka's own default partitioner."""

from __future__ import annotations

import pytest
from aiokafka import partitioner
from hypothesis import given
from hypothesis import strategies as st

from streams.wire import murmur2, partition_for


# From the tests of Kafka's own `Utils.murmur2`; signed, as in Java.
@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafkas_java_client(text: str, signed: int) -> None:
    assert murmur2(text.encode()) == signed % 2**32


@given(st.binary(max_size=40))
def test_the_hash_agrees_with_another_implementation(data: bytes) -> None:
    assert murmur2(data) == partitioner.murmur2(data) % 2**32


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 64))
def test_placement_agrees_with_another_client(tenant: str, partitions: int) -> None:
    choose = partitioner.DefaultPartitioner()
    everywhere = list(range(partitions))
    assert partition_for(tenant, partitions) == choose(tenant.encode(), everywhere, everywhere)
