"""A node's settings."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import ConfigError
from streams.local import LocalKafka, config


def specs(count: int, folder: Path = Path("/data")) -> list[config.NodeSpec]:
    return [
        config.NodeSpec(node_id=n, port=20_000 + n, controller_port=21_000 + n, folder=folder / f"node-{n}")
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize(("nodes", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_replication_follows_the_number_of_nodes(nodes: int, replicas: int, in_sync: int) -> None:
    all_of_them = specs(nodes)
    settings = config.properties(all_of_them[0], all_of_them, {})
    for name in (
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "share.coordinator.state.topic.replication.factor",
    ):
        assert settings[name] == str(replicas)
    for name in ("min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr"):
        assert settings[name] == str(in_sync)


def test_everything_listens_on_the_loopback_address() -> None:
    nodes = specs(3)
    for spec in nodes:
        settings = config.properties(spec, nodes, {})
        for name in ("listeners", "advertised.listeners", "controller.quorum.voters"):
            hosts = re.findall(r"(?:://|@)([^:]*):", settings[name])
            assert set(hosts) == {"127.0.0.1"}


def test_every_node_knows_all_voters_and_its_own_ports() -> None:
    nodes = specs(3)
    settings = config.properties(nodes[1], nodes, {})
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:21001,2@127.0.0.1:21002,3@127.0.0.1:21003"
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:20002,CONTROLLER://127.0.0.1:21002"
    assert settings["node.id"] == "2"


def test_more_listeners_stand_beside_the_plain_one() -> None:
    secured = config.Listener("SECURED", "SASL_SSL", 22_001)
    node = config.NodeSpec(node_id=1, port=20_001, controller_port=21_001, folder=Path("/data"), listeners=(secured,))
    settings = config.properties(node, [node], {})
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20001,SECURED://127.0.0.1:22001"
    assert settings["listeners"] == f"{settings['advertised.listeners']},CONTROLLER://127.0.0.1:21001"
    assert settings["listener.security.protocol.map"].endswith(",SECURED:SASL_SSL")


def test_clients_of_a_listener_may_be_sent_to_a_proxy() -> None:
    proxied = config.Listener("PROXIED", "PLAINTEXT", 22_001, advertised_port=23_001)
    node = config.NodeSpec(node_id=1, port=20_001, controller_port=21_001, folder=Path("/data"), listeners=(proxied,))
    settings = config.properties(node, [node], {})
    assert "PROXIED://127.0.0.1:22001" in settings["listeners"].split(",")
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20001,PROXIED://127.0.0.1:23001"


@pytest.mark.parametrize("advertised", [{"OTHER": [1, 2]}, {"PROXIED": [1]}])
def test_a_proxy_needs_a_listener_and_a_port_for_each_node(advertised: dict[str, list[int]]) -> None:
    with pytest.raises(ConfigError, match=r"name 2 port\(s\) of one of `listeners`"):
        LocalKafka(nodes=2, listeners={"PROXIED": "PLAINTEXT"}, advertised=advertised)


def test_overrides_come_last() -> None:
    nodes = specs(1)
    settings = config.properties(nodes[0], nodes, {"auto.create.topics.enable": "true", "own": "x"})
    assert settings["auto.create.topics.enable"] == "true"
    assert settings["own"] == "x"


def read_back(line: str) -> str:
    """A value as Java's Properties.load reads it."""
    value = line.rstrip("\n").partition("=")[2]
    units = re.sub(r"\\(u[0-9a-f]{4}|.)", _unescape, value)
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def _unescape(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else {"n": "\n", "r": "\r"}.get(escape, escape)


@given(st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc"]) | st.sampled_from("\\\n\r=:"), min_size=1))
def test_a_value_survives_the_properties_file(value: str) -> None:
    text = config.render({"name": value})
    assert text.isascii()
    assert text.count("\n") == 1
    assert read_back(text) == value


def test_cluster_ids_are_never_taken_for_an_option() -> None:
    made = {config.new_cluster_id() for _ in range(500)}
    assert len(made) == 500
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id) for cluster_id in made)
