"""The policy from file to topic: read it, check it as a whole, publish it, and read back what is in force."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from streams.admin.toml_lines import TomlLines
from streams.clock import monotonic
from streams.core.policy import Policy
from streams.core.policy_check import parse_policy
from streams.core.policy_problems import PolicyInvalid, Problem
from streams.errors import BadRecord, ConfigError, Unavailable
from streams.kafka import KafkaSettings, first_answer, from_kafka, mapped_errors
from streams.wire import MAX_MESSAGE_BYTES, PolicyChange, check_policy_size, decode_policy, encode_policy

_PARTITION: Final = 0  # the only one: changes have one order

# Covers an election of the partition's leader. librdkafka retries inside it.
TIMEOUT_S: Final = 30.0

_LISTED: Final = 50  # problems in one message

_TOML_AT: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column \d+\)", re.DOTALL)


class InForce(NamedTuple):
    """The policy that the shards follow, or will at their next step."""

    version: int  # its offset in the policy topic
    change: PolicyChange


def load_policy(path: Path) -> Policy:
    """Return the policy that a TOML file states.

    Raises `ConfigError` if the file cannot be read, is not TOML, or has problems, which are listed with their lines.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error
    return parse_policy_text(text, str(path))


def parse_policy_text(text: str, source: str) -> Policy:
    """Return the policy that a TOML text states; `source` names it in messages. Raises `ConfigError`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _TOML_AT.fullmatch(str(error))
        what, place = (at["what"], f"{source}:{at['line']}") if at else (str(error), source)
        raise ConfigError(f"not TOML: {what}", source=place) from error
    except (RecursionError, ValueError) as error:
        raise ConfigError("something in it is nested too deep, or a number is too long", source=source) from error
    try:
        policy = parse_policy(document)
        check_policy_size(policy)
    except PolicyInvalid as invalid:
        raise _listed(text, source, invalid.problems) from invalid
    except BadRecord as refused:
        raise ConfigError(refused.args[0], field=refused.field, source=source) from refused
    return policy


def publish_policy(settings: KafkaSettings, change: PolicyChange) -> int:
    """Write a policy to the policy topic and return its version, once all in-sync replicas have it.

    Raises `Unavailable` if Kafka does not answer, `ConfigError` if the topic is not there or the shards would not take
    the change (too large, its author's name too long).
    """
    try:
        value = encode_policy(change)
    except BadRecord as refused:
        raise ConfigError(refused.args[0], field=refused.field, value=refused.value) from refused
    doing, topic = f"publishing the policy to {settings.servers}", settings.topics.policy
    outcome: list[tuple[KafkaError | None, Message]] = []
    conf = settings.client(
        acks="all",
        enable_idempotence=True,
        message_max_bytes=MAX_MESSAGE_BYTES,
        message_timeout_ms=int(TIMEOUT_S * 1000),
        # A topic that is not known after this time is not there, rather than new.
        topic_metadata_propagation_max_ms=3_000,
    )
    with mapped_errors(doing):
        producer = Producer(conf)
        first_answer(settings, producer, partial(producer.list_topics, topic), TIMEOUT_S, doing)
        producer.produce(
            topic,
            value,
            change.policy.name.encode(),
            partition=_PARTITION,
            on_delivery=lambda error, message: outcome.append((error, message)),
        )
        # Longer than the message's own timeout, so that librdkafka has the last word.
        producer.flush(TIMEOUT_S + 5)
    if not outcome:
        raise Unavailable(f"{doing}: Kafka does not answer; is it running there?")
    error, message = outcome[0]
    if error is not None:
        raise from_kafka(error, doing)
    version = message.offset()
    if version is None:
        raise Unavailable(f"{doing}: Kafka acknowledged it without an offset; read it back")
    return version


def read_policy(settings: KafkaSettings) -> InForce | None:
    """Return the last policy that was published and can be read; None if there is none, so the built-in holds.

    Raises `Unavailable` if Kafka does not answer, `ConfigError` if the topic is not there.
    """
    conf = settings.client(
        group_id=settings.reader_group,
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_committed",
        fetch_message_max_bytes=MAX_MESSAGE_BYTES,
    )
    doing, topic = f"reading the policy from {settings.servers}", settings.topics.policy
    deadline = monotonic() + TIMEOUT_S
    last: InForce | None = None
    with mapped_errors(doing):
        consumer = Consumer(conf)
        try:
            # A consumer of a topic that is not there would wait for it, without a word.
            found = first_answer(settings, consumer, partial(consumer.list_topics, topic), TIMEOUT_S, doing)
            missing = found.topics[topic].error
            if missing is not None:
                raise KafkaException(missing)
            consumer.assign([TopicPartition(topic, _PARTITION, OFFSET_BEGINNING)])
            while (left := deadline - monotonic()) > 0:
                message = consumer.poll(left)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    last = _read(message) or last
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    return last
                elif not error.retriable():
                    raise KafkaException(error)
        finally:
            consumer.close()
    raise Unavailable(f"{doing}: Kafka does not answer; is it running there?")


def _read(message: Message) -> InForce | None:
    """A record that is no policy is passed over, as the shards pass it over."""
    offset = message.offset()
    try:
        return None if offset is None else InForce(offset, decode_policy(message.value()))
    except BadRecord:
        return None


def _listed(text: str, source: str, problems: tuple[Problem, ...]) -> ConfigError:
    lines = TomlLines(text)
    placed = [(lines.of(problem.path) or 0, problem) for problem in problems]
    placed.sort(key=lambda pair: pair[0])  # stable: what has no line comes first, in the checker's order
    errors = [
        ConfigError(
            problem.message, field=problem.where, value=problem.value, source=f"{source}:{line}" if line else source
        )
        for line, problem in placed
    ]
    if len(errors) == 1:
        return errors[0]
    told = [f"{len(errors)} problems; nothing was changed", *(f"  {error}" for error in errors[:_LISTED])]
    if len(errors) > _LISTED:
        told.append(f"  and {len(errors) - _LISTED} more")
    return ConfigError("\n".join(told), source=source)
