"""Where the commands of an auditor read, and from when: what they refuse, before they read anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.audit import kafka_recording
from streams.audit.export import ExportedRecording, export
from streams.cli.tree import app
from tests.recorded import record

COMMANDS = [["replay", "--jobs", "1"], ["verify"], ["explain", "nobody's"], ["what-if", "--fifo"]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "export"
    export(record(15, ticks=60, drain=False), path, now_ms=1)
    return path


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments], env=env)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("other", [["--kafka", "a:1"], ["--prefix", "other."], ["--kafka-config", "x"]])
def test_a_directory_and_a_kafka_are_two_sources(command: list[str], other: list[str], directory: Path) -> None:
    result = run(*command, "--from", str(directory), *other)
    assert result.exit_code == 2
    assert f"--from reads a directory: leave out {other[0]}" in result.stderr


def test_a_kafka_of_the_environment_is_for_other_commands(directory: Path) -> None:
    assert run("verify", "--from", str(directory), env={"FAIRSTREAM_KAFKA": "a:1"}).exit_code == 0


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(
            (command, option)
            for command in (COMMANDS[0], COMMANDS[3], ["export", "x"])
            for option in ("since", "until")
        ),
        (COMMANDS[2], "since"),
    ],
)
def test_what_is_no_moment_is_refused_with_its_option(command: list[str], option: str, directory: Path) -> None:
    source = [] if command[0] == "export" else ["--from", str(directory)]
    result = run(*command, *source, f"--{option}", "yesterday")
    assert result.exit_code == 2
    assert f"Invalid value for '--{option}': 'yesterday' is no moment" in result.stderr


@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[3]])
def test_a_time_that_ends_before_it_begins_is_refused(command: list[str], directory: Path) -> None:
    result = run(*command, "--from", str(directory), "--since", "1h", "--until", "2h")
    assert str(result.exception) == "until: is before --since (got '2h')"


def test_so_it_is_by_an_export(directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kafka_recording, "KafkaRecording", lambda _kafka: ExportedRecording(directory))
    result = run("export", str(tmp_path / "out"), "--since", "1h", "--until", "2h")
    assert str(result.exception) == "until: is before --since (got '2h')"
    assert not (tmp_path / "out").exists()


def test_nothing_is_not_called_equal(directory: Path) -> None:
    result = run("replay", "--jobs", "1", "--from", str(directory), "--until", "2001-01-01T00:00:00Z")
    assert result.exit_code == 0
    assert "shard 0: 0 steps, 0 decisions: nothing to compare\n" in result.stdout


def test_commands_are_listed_as_they_are_met() -> None:
    said = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:\n")[2]
    listed = [line.split()[0] for line in said.splitlines() if line[:3].strip() and line.startswith("  ")]
    assert listed[:6] == ["demo", "up", "topics", "policy", "scheduler", "submit"]
