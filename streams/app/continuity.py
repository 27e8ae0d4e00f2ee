"""Whether the topics are still those that a shard's positions speak of, and where its inputs go on.

A topic that was deleted and made anew has the same name and begins at offset 0 again. Going on at the old offsets
would skip what the new one holds below them, without a word; state that was written on into a new state topic lacks
all rows that did not change since. Kafka gives each topic an id, which is kept in the positions row and compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streams.errors import ConfigError, StateUnreadable
from streams.intake import Source
from streams.rows import PositionsRecord

if TYPE_CHECKING:
    from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.continuity")


@dataclass(frozen=True, slots=True)
class Topics:
    """What Kafka says of a shard's topics now. Topics are named without prefix."""

    partitions: Mapping[str, int]
    ids: Mapping[str, str]  # of those that exist; empty: Kafka was not asked
    bounds: Callable[[str], tuple[int, int]]  # of a topic's partition: the first offset still there, the next one


def next_reign(
    found: PositionsRecord | None, topics: Topics, names: TopicNames, shard: int, *, known_state: str | None = None
) -> PositionsRecord:
    """Return the positions from which a new reign goes on; `found` are the last one's, None for a fresh shard.

    `known_state` is the id of the state topic that this process has had the shard from before, None if it has not: a
    shard that was in memory a moment ago is not fresh, however empty its topic is now.

    Raises:
        ConfigError: the topics have other partition counts than when the state began, or one of them is missing.
        StateUnreadable: one of them is not the one that it was.
    """
    if found is None:
        if known_state is not None and topics.ids.get("state", known_state) != known_state:
            raise StateUnreadable(
                f"{names.state} was deleted and made anew under its owner, and nothing is left in it. To begin afresh "
                "with the inputs that are there, start the schedulers again"
            )
        fresh = PositionsRecord(epoch=0, applied={}, partitions=dict(topics.partitions))
        return _reign(fresh, topics, _reached(fresh, topics, names, shard))
    if found.partitions != topics.partitions:
        raise ConfigError(
            f"the state was made with {found.partitions} partitions: with other counts tenants belong to other "
            "shards; give the topics their old counts, or move it to new topics with `fairstream migrate shards`",
            field="topics",
            value=topics.partitions,
        )
    _same_topics(found, topics, names)
    return _reign(found, topics, _reached(found, topics, names, shard))


def _reign(last: PositionsRecord, topics: Topics, applied: dict[str, int]) -> PositionsRecord:
    return replace(last, epoch=last.epoch + 1, applied=applied, topics=dict(topics.ids or last.topics))


def _same_topics(found: PositionsRecord, topics: Topics, names: TopicNames) -> None:
    if not topics.ids:
        return
    for topic, then in found.topics.items():
        name, now = getattr(names, topic), topics.ids.get(topic)
        if now is None:
            raise ConfigError(f"{name} is missing; create it with `fairstream topics`", field="topics")
        if now != then:
            raise StateUnreadable(
                f"{name} was deleted and made anew while the state speaks of the old one. What was in it is lost to "
                f"this deployment. To begin afresh delete {names.state} as well, and create it again"
            )


def _reached(last: PositionsRecord, topics: Topics, names: TopicNames, shard: int) -> dict[str, int]:
    """Return what counts as applied: up to where the inputs begin, if what lay between is there no more."""
    applied = dict(last.applied)
    for source in Source:
        topic, name = source.value, getattr(names, source.value)
        next_offset = applied.get(topic, -1) + 1
        low, high = topics.bounds(name)
        if next_offset > high:
            raise StateUnreadable(
                f"{name}, partition {shard}, ends at {high}, but everything up to {next_offset} was applied: "
                "it was made anew beside the old state. Delete the state topic as well, or restore the input"
            )
        if next_offset < low:
            applied[topic] = low - 1
            if last.epoch:  # a fresh shard has missed nothing that it was to serve
                _LOG.error(
                    "streams.app.input_expired topic=%s partition=%d from=%d to=%d: up to %d records deleted by "
                    "retention, never read",
                    name,
                    shard,
                    next_offset,
                    low,
                    low - next_offset,
                )
    return applied
