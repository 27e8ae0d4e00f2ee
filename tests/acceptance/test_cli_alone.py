"""What the command line does without a Kafka of the test's: mostly, what it says is wrong."""

from __future__ import annotations

import json
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams import clock
from streams.local import ports
from tests.acceptance.conftest import Shell


def test_help_names_every_command(alone: Shell) -> None:
    done = alone.run("--help")
    assert done.status == 0
    for name in ("demo", "up", "topics", "policy", "acls", "scheduler", "submit", "cancel", "worker", "status"):
        assert f"\n  {name} " in done.out
    assert "Exit status" in done.out


def test_a_version(alone: Shell) -> None:
    done = alone.run("--version")
    assert done.status == 0
    assert done.out.startswith("fairstream ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["submit"],
        ["submit", "--tenant", "a"],
        ["submit", "--file", "x", "--tenant", "a"],
        ["submit", "--tenant", "a", "--workflow", "w", "--payload", "{"],
        ["submit", "--tenant", "a", "--workflow", "w", "--deadline", "soon"],
        ["submit", "--tenant", "a", "--workflow", "w", "--header", "x"],
        ["worker"],
        ["worker", "--simulate", "--exec", "true"],
        ["worker", "--exec", "no-such-program-anywhere"],
        ["worker", "--simulate", "--tokens-per-second", "0"],
        ["status", "--prefix", "a b"],
        ["status", "--kafka-config", "none.properties"],
        ["policy", "check", "none.toml"],
        ["submit", "--file", "none.csv"],
    ],
)
def test_what_must_be_corrected_ends_with_2_and_says_so(alone: Shell, arguments: list[str]) -> None:
    done = alone.run(*arguments)
    assert done.status == 2, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.strip()


def test_a_wrong_policy_is_shown_line_by_line(alone: Shell, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("quantum = 0\n\n[window]\nruns = 8\n\n[tenants.acme]\nwieght = 2\n", encoding="utf-8")
    done = alone.run("policy", "check", str(path))
    assert done.status == 2
    assert f"{path}:1: quantum" in done.err
    assert f"{path}:7: tenants.acme.wieght" in done.err


def test_a_good_policy_passes(alone: Shell) -> None:
    done = alone.run("policy", "check", "--json")
    assert done.status == 0
    assert done.json["valid"] is True


def test_errors_come_as_json_when_asked(alone: Shell, tmp_path: Path) -> None:
    done = alone.run("policy", "check", str(tmp_path / "none.toml"), "--json")
    assert done.status == 2
    assert json.loads(done.err)["error"] == "ConfigError"


def test_a_kafka_that_does_not_answer_ends_with_75_in_one_line(alone: Shell) -> None:
    commands = [
        ["status"],
        ["cancel", "acme", "r1"],
        ["submit", "--tenant", "a", "--workflow", "w"],
        ["demo", "--kafka", "127.0.0.1:1", "--story", "meridian"],
    ]
    with ThreadPoolExecutor(len(commands)) as pool:  # each waits for its Kafka, for many seconds
        all_done = [*pool.map(lambda arguments: alone.run(*arguments), commands)]
    for arguments, done in zip(commands, all_done, strict=True):
        *remarks, last = done.err.splitlines()
        assert done.status == 75, arguments
        assert done.out == ""
        assert last.startswith("fairstream: "), arguments
        assert "127.0.0.1:1" in done.err or arguments[0] != "demo"
        assert not remarks or arguments[0] == "demo", "it says what it is about to do"
        assert "Traceback" not in done.err


def test_up_that_is_killed_leaves_nothing_behind(alone: Shell) -> None:
    prefix = f"killed-{uuid.uuid4().hex[:8]}."

    def schedulers() -> list[str]:
        # ww: all of the line, however long
        lines = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
        return [line for line in lines if prefix in line and " scheduler " in line]

    with alone.start("up", "--json", "--prefix", prefix) as process:
        try:
            assert process.stdout is not None
            servers: str = json.loads(process.stdout.readline())["kafka"]
            assert schedulers()
        finally:
            process.kill()
    clock.wait_until(lambda: not schedulers(), 30, what="the end of the scheduler")
    port = int(servers.rpartition(":")[2])
    clock.wait_until(lambda: not ports.answers(port), 30, what="the end of the broker")
