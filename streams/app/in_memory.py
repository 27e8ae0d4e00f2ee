"""A shard from rows in memory, by the code that makes it from the state topic: for simulations of what Kafka does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streams.app.loading import StateTopic
from streams.app.step import Stepper
from streams.app.transaction import Writer
from streams.core.shard import Shard
from streams.intake import Reader, Source
from streams.kafka import KafkaSettings
from streams.wire import topic_names

_NAMES: Final = topic_names("")
_NO_END: Final = 1 << 62  # the inputs hold whatever the positions speak of


def load(rows: Mapping[bytes, bytes], shard: int, shards: int, writer: Writer) -> tuple[Shard, Stepper]:
    """Return a shard of a deployment without prefix, and what steps it. Raises what `StateTopic.made_of` raises."""
    counts = {source.value: shards for source in Source}
    topic = StateTopic(KafkaSettings(servers="nowhere:9092", prefix=""), _NAMES, shard, counts, Shard)
    core, positions, state = topic.made_of(dict(rows), lambda _topic: (0, _NO_END))
    assert isinstance(core, Shard), "it was made as one"
    return core, Stepper(core, positions, writer, Reader(_NAMES, shard, shards), shard=shard, state=state)
