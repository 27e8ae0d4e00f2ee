"""The topics as data."""

from __future__ import annotations

from streams.wire import MAX_VALUE_BYTES, TOPICS, TopicNames, topic_names
from streams.wire.topics import MAX_MESSAGE_BYTES, Count

KAFKAS_DEFAULT = 1_048_588


def test_names_follow_the_prefix() -> None:
    names = topic_names("eu.")
    assert names == TopicNames(*(f"eu.{field}" for field in TopicNames._fields))


def test_what_shares_a_shards_owner_has_its_count() -> None:
    counts = {topic.name: topic.count for topic in TOPICS}
    for name in ("requests", "completions", "journal", "state", "board", "checkpoints"):
        assert counts[name] is Count.SHARDS
    assert (counts["policy"], counts["dispatch"], counts["status"]) == (Count.ONE, Count.DISPATCH, Count.ONE)


def test_what_is_the_last_word_of_its_key_is_compacted() -> None:
    assert {topic.name for topic in TOPICS if topic.compacted} == {"policy", "state", "status"}


def test_67_whatever_a_producer_may_send_fits_behind_an_envelope() -> None:
    assert MAX_VALUE_BYTES < KAFKAS_DEFAULT
    bounds = {topic.name: int(topic.configs.get("max.message.bytes", KAFKAS_DEFAULT)) for topic in TOPICS}
    for name in ("dispatch", "rejected", "state"):
        # The envelope: a few names of 255 characters, at worst six bytes each.
        assert bounds[name] > MAX_VALUE_BYTES + 20_000
    assert bounds["journal"] == MAX_MESSAGE_BYTES


def test_the_timestamps_are_the_producers() -> None:
    # Waiting times start when the producer wrote, not when the broker took it: Kafka's default, to be left alone.
    assert not any("message.timestamp.type" in topic.configs for topic in TOPICS)
