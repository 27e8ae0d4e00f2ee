"""Waits for a Kafka that is not up yet, and says so once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from confluent_kafka.admin import AdminClient

from streams.errors import ConfigError, Unavailable
from streams.kafka import NO_SUCH_TOPIC, KafkaSettings, first_answer, mapped_errors

_LOG: Final = logging.getLogger("streams.client.waiting")
_TRY_S: Final = 2.0


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
