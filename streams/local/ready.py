"""Whether a broker really answers: not only its port, but the metadata that clients need."""

from typing import Final, NamedTuple

from streams.errors import NotInstalled

_ANSWER_S: Final = 2.0


class Answer(NamedTuple):
    """Which cluster a broker belongs to, and the ids of the nodes that it knows as running."""

    cluster_id: str
    members: frozenset[int]


SILENCE: Final = Answer("", frozenset())


def ask(address: str) -> Answer:
    """What the broker at this address says of its cluster."""
    try:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - import of `streams.local` stays light
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    except ImportError as error:
        raise NotInstalled("a local Kafka needs the `local` extra: pip install 'fairstream[local]'") from error
    # Refused connections are what we wait through: librdkafka must not print them.
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 2000})
    try:
        metadata = client.list_topics(timeout=_ANSWER_S)
    except KafkaException:
        return SILENCE
    return Answer(metadata.cluster_id or "", frozenset(metadata.brokers))
