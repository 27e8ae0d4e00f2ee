"""`fairstream gate` and its commands: whose options are whose."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from streams.cli.tree import app
from tests.commands import parse


@pytest.mark.parametrize("option", ["--kafka", "--prefix", "--name"])
def test_options_of_the_gate_are_not_lost_on_its_commands(option: str) -> None:
    done = CliRunner().invoke(app, ["gate", option, "x", "add", "acme"])
    assert done.exit_code == 2
    assert f"{option} behind 'add'" in done.output.replace("\n", " ")


def test_a_gate_can_be_named() -> None:
    assert parse(["gate", "--name", "a"])["name"] == "a"
    assert parse(["gate", "add", "--kafka", "x:1", "acme", "globex"])["tenants"] == ["acme", "globex"]


def test_own_topics_are_asked_for_by_their_tenant() -> None:
    own = ["--own-topic-of", "acme"]
    assert parse(["submit", *own, "--tenant", "acme", "--workflow", "w"])["own_topic_of"] == "acme"
    assert parse(["cancel", *own, "acme", "run-1"])["own_topic_of"] == "acme"
    assert parse(["cancel", "acme", "run-1"])["own_topic_of"] is None
