"""How to reach Kafka: one set of settings for every room, and Kafka's errors in our own words.

The options of a `--kafka-config` file are librdkafka's (`security.protocol`, `sasl.username`, `ssl.ca.location`, ...),
one `name = value` a line, as in the configuration files of other librdkafka tools.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from streams import clock
from streams.errors import (
    BadRecord,
    ConfigError,
    FairstreamError,
    NotAuthorized,
    NotInstalled,
    OwnershipLost,
    Unavailable,
)

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException

    from streams.wire.topics import TopicNames

DEFAULT_PREFIX: Final = "runs."
_HEARD: Final = 20  # errors that are remembered
_FIRST_SLICE_S: Final = 1.0  # of the time for a first answer: a refusal is known after it
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]*")
_LOG: Final = logging.getLogger("streams.kafka")

# Kafka does not tell the two apart, lest somebody learn the names of topics that are not theirs to see.
NO_SUCH_TOPIC: Final = "no such topic, or no right to see it; create the topics with `fairstream topics`"

# While a broker is away it is tried a few times a second, not hundreds of times, each of which is a line in the log.
_PATIENCE: Final = {"reconnect.backoff.ms": "200", "reconnect.backoff.max.ms": "2000"}

# Settings that carry a promise of ours (no loss, no record twice, one order of partitions), under all of their names:
# a file may not change them.
_OURS: Final = frozenset(
    {
        "acks",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "metadata.broker.list",
        "partitioner",
        "request.required.acks",
        "transactional.id",
    }
)

# Kafka's errors, by what can be done about them. Names that begin with `_` are librdkafka's own.
_REMEDIES: Final[tuple[tuple[type[FairstreamError], frozenset[str], str], ...]] = (
    (OwnershipLost, frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}), ""),
    (
        ConfigError,
        frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}),
        "; create the topics with `fairstream topics`, or check the prefix",
    ),
    (
        NotAuthorized,
        frozenset(
            {
                "CLUSTER_AUTHORIZATION_FAILED",
                "GROUP_AUTHORIZATION_FAILED",
                "SASL_AUTHENTICATION_FAILED",
                "TOPIC_AUTHORIZATION_FAILED",
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
                "_AUTHENTICATION",
            }
        ),
        "; check the credentials in the Kafka options, and this user's rights",
    ),
    (ConfigError, frozenset({"_SSL"}), "; check the certificates in the Kafka options"),
    (
        ConfigError,
        frozenset(
            {
                "INVALID_CONFIG",
                "INVALID_REPLICATION_FACTOR",
                "POLICY_VIOLATION",
                "TOPIC_EXCEPTION",
                "_CONFLICT",
                "_INVALID_ARG",
            }
        ),
        "",
    ),
    (
        BadRecord,
        frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}),
        "; send less, or raise the topic's max.message.bytes",
    ),
    (
        Unavailable,
        frozenset({"_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT", "_RESOLVE", "_TIMED_OUT", "_TRANSPORT"}),
        "; is Kafka running there, and is security.protocol (in the Kafka options) what it wants?",
    ),
    (
        # A broker that has gone or is just back, a partition whose leader moves. Not all of these are marked retriable.
        Unavailable,
        frozenset(
            {
                "BROKER_NOT_AVAILABLE",
                "COORDINATOR_LOAD_IN_PROGRESS",
                "COORDINATOR_NOT_AVAILABLE",
                "FENCED_LEADER_EPOCH",
                "KAFKA_STORAGE_ERROR",
                "LEADER_NOT_AVAILABLE",
                "NETWORK_EXCEPTION",
                "NOT_CONTROLLER",
                "NOT_COORDINATOR",
                "NOT_LEADER_FOR_PARTITION",
                "OFFSET_NOT_AVAILABLE",
                "REPLICA_NOT_AVAILABLE",
                "REQUEST_TIMED_OUT",
                "UNKNOWN_LEADER_EPOCH",
                "_DESTROY_BROKER",  # librdkafka let go of a broker while it was being asked
            }
        ),
        "",
    ),
)


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where Kafka is, what our topics are called there, and how to be let in."""

    servers: str  # host:port, several separated by commas
    prefix: str = DEFAULT_PREFIX  # before every topic name
    # librdkafka's, for security and networks. Not shown: there are passwords among them.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What librdkafka told clients of these settings lately beside what their calls returned: see `first_answer`.
    heard: deque[KafkaError] = field(
        default_factory=lambda: deque(maxlen=_HEARD), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Refuse what cannot work. Raises `ConfigError`."""
        if not self.servers.strip():
            raise ConfigError("name at least one host:port", field="kafka")
        if not _TOPIC_NAME.fullmatch(self.prefix):
            raise ConfigError("use letters, digits, '.', '_' and '-' only", field="prefix", value=self.prefix)
        ours = sorted(_OURS.intersection(self.options))
        if ours:
            # Not with its value: a file that is wrong may have anything anywhere, passwords too.
            raise ConfigError("fairstream sets this itself; remove it", field=ours[0])

    @property
    def topics(self) -> TopicNames:
        """The full names of the topics."""
        from streams.wire.topics import topic_names  # noqa: PLC0415 - reads the schemas, which `--help` need not

        return topic_names(self.prefix)

    @property
    def reader_group(self) -> str:
        """The group of all readers that join none. librdkafka wants a name, and asks Kafka who coordinates it.

        One for all, since whoever reads needs a right to ask that (`streams.admin.acls`).
        """
        return f"{self.prefix}readers"

    @property
    def worker_group(self) -> str:
        """The group in which workers share the dispatches, unless they are told another."""
        return f"{self.prefix}workers"

    @property
    def gate_group(self) -> str:
        """The group in which gates share the tenants' intake topics; their transactional ids begin with it."""
        return f"{self.prefix}gate"

    def client(self, **own: Any) -> dict[str, Any]:
        """Return a configuration for a confluent-kafka client; `own` wins. Underscores in names stand for dots."""
        return {
            **_PATIENCE,
            **self.options,
            "bootstrap.servers": self.servers,
            "logger": _LOG,
            "error_cb": self.heard.append,
            **{name.replace("_", "."): value for name, value in own.items()},
        }


def scheduler_group(prefix: str) -> str:
    """Return the group in which schedulers share the shards, unless they are told another.

    Two deployments on one cluster differ in their prefix, so their groups must too.
    """
    return "fairstream" if prefix == DEFAULT_PREFIX else f"fairstream-{prefix.strip('.-_') or 'bare'}"


def transactional_id(group: str, shard: int) -> str:
    """Whoever of a group of schedulers initialised this id last owns the shard."""
    return f"{group}-{shard}"


def migration_id(group: str) -> str:
    """The transactional id under which a deployment is filled whose schedulers will be of this group."""
    return f"{group}-migration"


def read_options(path: Path) -> dict[str, str]:
    """Read a `name = value` file; `#` begins a comment line. Raises `ConfigError` with the line's number.

    No message quotes a line: it may be half of a password.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error
    options: dict[str, str] = {}
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise ConfigError("write `name = value`", source=f"{path}:{number}")
        if name in options:
            raise ConfigError("stands here twice", source=f"{path}:{number}", field=name)
        options[name] = value
    return options


@contextmanager
def mapped_errors(doing: str) -> Iterator[None]:
    """Turn what confluent-kafka raises into our errors; `doing` begins the message: "reading runs.status"."""
    try:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - the CLI must start without it
    except ImportError as error:
        raise NotInstalled("the Kafka client is missing: pip install 'fairstream[client]'") from error
    try:
        yield
    except KafkaException as error:
        raise from_exception(error, doing) from error


class _Polled(Protocol):
    """The part of an admin client, producer or consumer that is used here."""

    def poll(self, timeout: float) -> object: ...


def first_answer(
    kafka: KafkaSettings, client: _Polled, ask: Callable[[float], Answer], timeout_s: float, doing: str
) -> Answer:
    """Return what a client hears when it asks its first question; `ask` gets the seconds it may take.

    It tells a Kafka that does not let us in from one that does not answer. librdkafka does not: the call hears that
    nobody answered, while the reason (a wrong password, an unknown certificate) goes to a callback. Without it a
    process would wait for ever for what cannot mend itself. A client without TLS at a port that wants it, or the other
    way round, is just cut off: that still looks like an absent Kafka. `client` was made from `kafka.client`, and has no
    records to give yet: they would be lost. Raises `ConfigError` for a refusal, and what `ask` raises.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as above

    kafka.heard.clear()
    end, slice_s = clock.monotonic() + timeout_s, _FIRST_SLICE_S
    while True:
        left = end - clock.monotonic()
        try:
            return ask(min(slice_s, left))
        except KafkaException as error:
            client.poll(0)  # callbacks come in polls only
            told = [from_kafka(each, doing) for each in tuple(kafka.heard)]
            refusal = next((each for each in told if isinstance(each, ConfigError)), None)
            if refusal is not None:
                raise refusal from error
            if left <= slice_s or not isinstance(from_exception(error, doing), Unavailable):
                raise
        slice_s *= 2  # a controller that is being elected answers late


def from_exception(error: KafkaException, doing: str) -> FairstreamError:
    """Return the error of ours for one that confluent-kafka raised."""
    from confluent_kafka import KafkaError  # noqa: PLC0415 - as above

    cause = error.args[0] if error.args else None
    return from_kafka(cause, doing) if isinstance(cause, KafkaError) else FairstreamError(f"{doing}: {error}")


def from_kafka(error: KafkaError, doing: str) -> FairstreamError:
    """Return the error of ours that tells the caller of `doing` what to do about Kafka's."""
    text = f"{doing}: {error.str()}"
    for kind, names, advice in _REMEDIES:
        if error.name() in names:
            return kind(text + advice)
    return Unavailable(text) if error.retriable() else FairstreamError(text)
