"""What a node is told: its settings as `server.properties`, and the names in its folder. Pure."""

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streams.local.ports import LOOPBACK

_QUORUM: Final = 3  # from so many nodes on, one may be lost without losing data

# Inside a node's folder, where its processes run: Kafka takes a comma, and Java a colon, in a longer path for the end
# of it, and folders may have any name.
DATA: Final = "data"
JARS: Final = "jars"
PROPERTIES: Final = "server.properties"


@dataclass(frozen=True, slots=True)
class Listener:
    """One more way in for clients, beside the plain one that nodes and we ourselves use."""

    name: str  # in capitals; its settings begin with `listener.name.<name in small letters>.`
    protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    port: int
    advertised_port: int | None = None  # where clients are sent, if there is a proxy in front

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def advertised(self) -> str:
        return f"{LOOPBACK}:{self.advertised_port or self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node's identity: it keeps its ports and its folder across restarts."""

    node_id: int
    port: int
    controller_port: int
    folder: Path
    listeners: tuple[Listener, ...] = ()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"


def properties(spec: NodeSpec, nodes: Sequence[NodeSpec], overrides: Mapping[str, str]) -> dict[str, str]:
    """The node's settings; `overrides` come last and may replace any of them."""
    replicas = min(len(nodes), 3)
    in_sync = 2 if len(nodes) >= _QUORUM else 1
    plain = f"PLAINTEXT://{spec.address}"
    listeners = [plain, *(f"{each.name}://{each.address}" for each in spec.listeners)]
    advertised = [plain, *(f"{each.name}://{each.advertised}" for each in spec.listeners)]
    protocols = ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT"]
    protocols += [f"{each.name}:{each.protocol}" for each in spec.listeners]
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": spec.node_id,
        "controller.quorum.voters": ",".join(f"{n.node_id}@{LOOPBACK}:{n.controller_port}" for n in nodes),
        "listeners": ",".join([*listeners, f"CONTROLLER://{LOOPBACK}:{spec.controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(protocols),
        "log.dirs": DATA,
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        # Created at first use, and each partition costs files: 50 of each would slow every test.
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.num.partitions": 4,
        # A typo must not become a topic.
        "auto.create.topics.enable": "false",
        # Audits read from the beginning.
        "log.retention.ms": -1,
        # A first member need not wait 3 s for others; a killed one may be missed after a second.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # A member of a share group is given its partitions by its second heartbeat: after 5 s by default.
        "group.share.min.heartbeat.interval.ms": 500,
        "group.share.heartbeat.interval.ms": 1000,
        # A killed node is fenced after this, and its leaders move; Kafka's default is 9 s.
        "broker.session.timeout.ms": 5000,
        "broker.heartbeat.interval.ms": 1000,
        # The default of 128 MB would be half of the heap.
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }
    return {name: str(value) for name, value in settings.items()} | dict(overrides)


def render(settings: Mapping[str, str]) -> str:
    """As a Java properties file: a backslash escapes, and a line ends the value."""
    return "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in settings.items())


def _escape(text: str) -> str:
    # The file is read as ISO 8859-1 with \\u escapes.
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "".join(char if char.isascii() else _utf16(char) for char in plain)


def _utf16(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def new_cluster_id() -> str:
    """A random cluster id in Kafka's form: 22 characters of URL-safe base64."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):  # the format tool would take it for an option
            return text
