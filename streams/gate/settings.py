"""What a gate is told."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from streams.errors import ConfigError
from streams.kafka import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """How a gate works. Raises `ConfigError` naming the field that cannot be."""

    # Tells this gate from others of its deployment. The same after a restart, so that a transaction which the last
    # process of this name left open is ended at once, and not after its timeout. Empty: the host's.
    name: str = ""
    # How long a gate may be silent before the group gives its topics to others.
    session_timeout_s: float = 10.0
    # How long Kafka keeps a transaction open whose gate is silent; the shards that it wrote to read nothing behind it
    # for as long. Short, since a turn that was aborted is only done again.
    transaction_timeout_s: float = 10.0
    # How soon the topic of a new tenant is found.
    look_every_s: float = 3.0

    def __post_init__(self) -> None:
        for name in ("session_timeout_s", "transaction_timeout_s", "look_every_s"):
            if getattr(self, name) <= 0:
                raise ConfigError("must be greater than 0", field=name, value=getattr(self, name))

    def transactional_id(self, kafka: KafkaSettings) -> str:
        """Whoever initialised this id last is the gate of that name."""
        return f"{kafka.gate_group}-{self.name or socket.gethostname()}"
