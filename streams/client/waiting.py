"""Waits for a Kafka that is not up, or only partly, and says so once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from confluent_kafka.admin import AdminClient

from streams import clock
from streams.errors import ConfigError, Unavailable
from streams.kafka import NO_SUCH_TOPIC, KafkaSettings, first_answer, mapped_errors

_LOG: Final = logging.getLogger("streams.client.waiting")
_TRY_S: Final = 2.0
_AGAIN_S: Final = 0.5

T = TypeVar("T")


def wait_for_topic(kafka: KafkaSettings, topic: str, *, give_up: Callable[[], bool]) -> bool:
    """Wait until Kafka answers and has `topic`; return False when `give_up` says so.

    Raises `ConfigError` if Kafka answers and the topic does not exist.
    """
    with mapped_errors(f"connecting to {kafka.servers}"):
        admin = AdminClient(kafka.client())
    doing = f"asking {kafka.servers} for its topics"
    told = False
    while not give_up():
        try:
            with mapped_errors(doing):
                found = first_answer(kafka, admin, partial(admin.list_topics, None), _TRY_S, doing).topics
        except Unavailable:
            if not told:
                _LOG.warning("streams.client.waiting kafka=%s: no answer yet, trying on", kafka.servers)
                told = True
            continue
        if topic not in found:
            raise ConfigError(NO_SUCH_TOPIC, field="topic", value=topic)
        return True
    return False


def open_when_up(open_: Callable[[], T], *, give_up: Callable[[], bool]) -> T | None:
    """Return what `open_` returns, once it raises `Unavailable` no more; None when `give_up` says so.

    That Kafka answers does not mean that a partition has a leader, or that the broker that is asked next is there.
    """
    told = False
    while not give_up():
        try:
            return open_()
        except Unavailable as error:
            if not told:
                _LOG.warning("streams.client.waiting: not all of Kafka is there, trying on: %s", error)
                told = True
            clock.pause(_AGAIN_S)
    return None
