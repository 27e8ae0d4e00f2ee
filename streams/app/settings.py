"""The settings of a scheduler process: frozen, checked as a whole before anything is started.

Each can be set by an argument of `fairstream scheduler` and by an environment variable: `FAIRSTREAM_` and the
field's name in capitals. An argument wins over the environment, and that over the default.

How the timeouts add up. A scheduler that dies is noticed after `session_timeout_s`; its shards are then fenced and
loaded by others (half a second, and the load). Its open transaction is ended by that fence. Only if nobody takes over
does the transaction's own timeout matter: until then readers do not get past it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from streams.app.faults import parse_faults
from streams.errors import ConfigError
from streams.kafka import DEFAULT_PREFIX, KafkaSettings, read_options, scheduler_group, transactional_id

ENVIRONMENT: Final = "FAIRSTREAM_"

# Brokers' own limits, by default: group.{min,max}.session.timeout.ms and transaction.max.timeout.ms.
_SESSION_S: Final = (1.0, 1800.0)
_MAX_INPUTS: Final = 4_000  # of a step: with more its journal record might not fit, see `streams.wire.STEP_BYTES`
_TRANSACTION_S: Final = (1.0, 900.0)
_LONGEST_CHECKPOINT_S: Final = 7 * 86_400.0  # inputs are kept for so long


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a scheduler process is told. Raises `ConfigError` naming the first field that cannot be."""

    # --- where and as whom

    kafka: str = "127.0.0.1:9092"  # host:port, several separated by commas
    kafka_config: Path | None = None  # a file of librdkafka properties, for SASL and TLS
    prefix: str = DEFAULT_PREFIX  # before every topic name
    group: str = ""  # consumer group, and stem of the transactional ids; empty: made from the prefix
    data_dir: Path | None = None  # Faust wants a folder; nothing in it is needed after the process has ended

    # --- topics

    shards: int = 1  # partitions of the sharded topics; must be what the topics have
    dispatch_partitions: int = 8  # used when the topics are created
    create_topics: bool = False  # create what is missing instead of refusing to start

    # --- steps

    # The shortest time from one commit to the next step of the same shard. It lets a step collect what arrives:
    # fewer and larger transactions, a lower tail. Multiplied by a quarter of the shards owned if these are more than 4.
    step_pause_ms: int = 10
    # Inputs of one step at most. A step of 2,000 inputs writes about 10,000 records and commits in 40 ms, far below
    # the transaction's timeout, and its journal record (100 bytes an input) stays far below its topic's limit.
    max_step_inputs: int = 2_000
    max_step_bytes: int = 8 * 1024 * 1024  # the same for runs with large payloads, which are written three times
    # What may wait in memory for a shard's next step. More is left in Kafka.
    inbox_records: int = 8_000
    inbox_bytes: int = 32 * 1024 * 1024

    # --- time

    # How long this process may be silent before the group gives its shards to others. Heartbeats go out from a
    # thread of their own, so it covers pauses of the process, not long steps.
    session_timeout_s: float = 10.0
    # How long Kafka keeps a transaction open whose writer is silent. Must outlast a broker's restart, during which
    # a commit waits; readers of a dead deployment wait as long.
    transaction_timeout_s: float = 60.0
    # A shard that is lost although the group gives it to us is taken again. If it is lost over and over for longer
    # than this, another deployment has the same transactional ids, and the process ends.
    lost_shard_grace_s: float = 30.0
    # A shard whose state or topics are not as they must be is not served, and looked at again after this time.
    refused_retry_s: float = 30.0
    # From SIGTERM to the end of the process, whatever hangs.
    stop_timeout_s: float = 4.5
    # How long after a shard's last checkpoint the next one is written, from which a replay can begin; 0: none are.
    checkpoint_interval_s: float = 3_600.0

    # --- surfaces

    status_interval_ms: int = 1_000  # how often a shard's view goes to the status topic, at most
    web_host: str = "127.0.0.1"  # /healthz and /readyz; no secrets, but nobody outside needs them either
    web_port: int | None = None  # None: no web server
    faults: str | None = None  # tests only, see `streams.app.faults`

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _positive(self, "shards", "dispatch_partitions", "max_step_bytes")
        _positive(self, "inbox_records", "inbox_bytes", "status_interval_ms")
        _positive(self, "lost_shard_grace_s", "refused_retry_s", "stop_timeout_s")
        _between(self, "max_step_inputs", 1, _MAX_INPUTS)
        _between(self, "step_pause_ms", 0, 10_000)
        _between(self, "session_timeout_s", *_SESSION_S)
        _between(self, "transaction_timeout_s", *_TRANSACTION_S)
        _between(self, "checkpoint_interval_s", 0, _LONGEST_CHECKPOINT_S)
        if self.web_port is not None:
            _between(self, "web_port", 1, 65_535)
        if self.inbox_records < self.max_step_inputs:
            raise ConfigError(
                f"must hold at least one step: max_step_inputs is {self.max_step_inputs}",
                field="inbox_records",
                value=self.inbox_records,
            )
        parse_faults(self.faults)
        _ = self.kafka_settings

    @property
    def kafka_settings(self) -> KafkaSettings:
        """How to reach Kafka. Reads the properties file each time. Raises `ConfigError`."""
        options = read_options(self.kafka_config) if self.kafka_config is not None else {}
        return KafkaSettings(servers=self.kafka, prefix=self.prefix, options=options)

    @property
    def group_id(self) -> str:
        """The consumer group."""
        return self.group or scheduler_group(self.prefix)

    def transactional_id(self, shard: int) -> str:
        """Whoever initialised this id last owns the shard."""
        return transactional_id(self.group_id, shard)

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ, **arguments: Any) -> Settings:
        """Return settings from arguments (None: not given) and environment. Raises `ConfigError`."""
        values: dict[str, Any] = {}
        for field in fields(cls):
            given = arguments.pop(field.name, None)
            name = ENVIRONMENT + field.name.upper()
            if given is not None:
                values[field.name] = given
            elif environment.get(name):
                values[field.name] = _read(str(field.type), field.name, environment[name], name)
        if arguments:
            raise ConfigError("is no setting of the scheduler", field=next(iter(arguments)))
        return cls(**values)


def _flag(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    return known[text.lower()]


_READERS: Final[dict[str, Callable[[str], Any]]] = {"int": int, "float": float, "bool": _flag, "Path": Path, "str": str}


def _read(kind: str, field: str, text: str, source: str) -> Any:
    kind = kind.removesuffix(" | None")
    try:
        return _READERS[kind](text)
    except (ValueError, KeyError) as error:
        raise ConfigError(f"is not a value of type {kind}", field=field, value=text, source=source) from error


def _positive(settings: Settings, *names: str) -> None:
    for name in names:
        if getattr(settings, name) <= 0:
            raise ConfigError("must be greater than 0", field=name, value=getattr(settings, name))


def _between(settings: Settings, name: str, low: float, high: float) -> None:
    if not low <= getattr(settings, name) <= high:
        raise ConfigError(f"must be between {low:g} and {high:g}", field=name, value=getattr(settings, name))
