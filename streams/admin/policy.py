"""The policy from file to topic: read it, check it as a whole, publish it, and read back what is in force."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from streams.admin.toml_lines import line_of
from streams.clock import monotonic
from streams.core.policy import Policy
from streams.core.policy_check import PolicyInvalid, Problem, parse_policy
from streams.errors import BadRecord, ConfigError, Unavailable
from streams.kafka import KafkaSettings, from_kafka, mapped_errors
from streams.wire import MAX_MESSAGE_BYTES, PARTITIONER, PolicyChange, decode_policy, encode_policy

_PARTITION: Final = 0  # the only one: changes have one order

# Covers an election of the partition's leader. librdkafka retries inside it.
TIMEOUT_S: Final = 30.0

_TOML_AT: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column \d+\)", re.DOTALL)


class InForce(NamedTuple):
    """The policy that the shards follow, or will at their next step."""

    version: int  # its offset in the policy topic
    change: PolicyChange


def load_policy(path: Path) -> Policy:
    """Return the policy that a TOML file states.

    Raises `ConfigError` if the file cannot be read, is not TOML, or has problems, all of which are listed with
    their lines.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error
    return parse_policy_text(text, str(path))


def parse_policy_text(text: str, source: str) -> Policy:
    """Return the policy that a TOML text states; `source` names it in messages. Raises `ConfigError`."""
    try:
        return parse_policy(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        at = _TOML_AT.fullmatch(str(error))
        what, place = (at["what"], f"{source}:{at['line']}") if at else (str(error), source)
        raise ConfigError(f"not TOML: {what}", source=place) from error
    except PolicyInvalid as invalid:
        raise _listed(text, source, invalid.problems) from invalid


def publish_policy(settings: KafkaSettings, change: PolicyChange) -> int:
    """Write a policy to the policy topic and return its version, once all in-sync replicas have it.

    Raises `Unavailable` if Kafka does not answer, `ConfigError` if the topic is not there or the policy too large.
    """
    value = encode_policy(change)
    if len(value) > MAX_MESSAGE_BYTES:
        raise ConfigError("the policy is too large for one message; name fewer tenants", field="tenants")
    outcome: list[tuple[KafkaError | None, Message]] = []
    conf = settings.client(
        acks="all",
        enable_idempotence=True,
        partitioner=PARTITIONER,
        message_max_bytes=MAX_MESSAGE_BYTES,
        message_timeout_ms=int(TIMEOUT_S * 1000),
        # A topic that is not known after this time is not there, rather than new.
        topic_metadata_propagation_max_ms=3_000,
    )
    with mapped_errors("publishing the policy"):
        producer = Producer(conf)
        producer.produce(
            settings.topics.policy,
            value,
            change.policy.name.encode(),
            partition=_PARTITION,
            on_delivery=lambda error, message: outcome.append((error, message)),
        )
        # Longer than the message's own timeout, so that librdkafka has the last word.
        producer.flush(TIMEOUT_S + 5)
    if not outcome:
        raise Unavailable("publishing the policy: Kafka does not answer; is it running there?")
    error, message = outcome[0]
    if error is not None:
        raise from_kafka(error, "publishing the policy")
    version = message.offset()
    if version is None:
        raise Unavailable("publishing the policy: Kafka acknowledged it without an offset; read it back")
    return version


def read_policy(settings: KafkaSettings) -> InForce | None:
    """Return the last policy that was published and can be read; None if there is none, so the built-in holds.

    Raises `Unavailable` if Kafka does not answer, `ConfigError` if the topic is not there.
    """
    conf = settings.client(
        group_id="fairstream-policy-reader",  # librdkafka wants one; nothing is committed under it
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_committed",
        fetch_message_max_bytes=MAX_MESSAGE_BYTES,
    )
    doing, topic = "reading the policy", settings.topics.policy
    deadline = monotonic() + TIMEOUT_S
    last: InForce | None = None
    with mapped_errors(doing):
        consumer = Consumer(conf)
        try:
            # A consumer of a topic that is not there would wait for it, without a word.
            missing = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].error
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
    placed = [(line_of(text, problem.path), problem) for problem in problems]
    placed.sort(key=lambda pair: pair[0] or 0)  # stable: what has no line comes first, in the checker's order
    places = [f"{source}:{line}" if line else source for line, _ in placed]
    if len(problems) == 1:
        only = problems[0]
        return ConfigError(only.message, field=only.where, value=only.value, source=places[0])
    lines = [f"  {place}: {problem}" for place, (_, problem) in zip(places, placed, strict=True)]
    return ConfigError("\n".join([f"{len(problems)} problems; nothing was changed", *lines]), source=source)
