"""`fairstream audit verify` over an exported directory: what is shown, and what the exit status says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from streams.audit.export import export
from streams.audit.recording import MemoryRecording
from streams.cli.tree import app
from tests.recorded import record
from tests.unit.audit.verify.tampering import altered, documents, mended


@pytest.fixture(scope="module")
def recorded() -> MemoryRecording:
    return record(15, ticks=60, drain=False)


@pytest.fixture(scope="module")
def sound(recorded: MemoryRecording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("verify") / "sound"
    export(recorded, directory, now_ms=1)
    return directory


@pytest.fixture(scope="module")
def tampered(recorded: MemoryRecording, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A directory whose files are in order, and a settlement in it that is not; its step."""
    index = next(index for index, each in enumerate(documents(recorded, "journal", 0)) if each["settlements"]["tenant"])

    def change(document: dict[str, Any]) -> None:
        document["settlements"]["actual"][0] += 1_000

    directory = tmp_path_factory.mktemp("verify") / "tampered"
    export(mended(altered(recorded, "journal", 0, index, change), 0), directory, now_ms=1)
    return directory, int(documents(recorded, "journal", 0)[index]["step"])


def run(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", "verify", "--from", str(directory), "--interval", "1s", *arguments])


def lines(result: Result) -> list[str]:
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_nothing_wrong_is_said_in_one_line_beneath_what_was_looked_at(recorded: MemoryRecording, sound: Path) -> None:
    result = run(sound)
    assert result.exit_code == 0, result.output
    steps = sum(len(recorded.topics["journal", shard]) for shard in range(2))
    assert lines(result)[-1] == f"{steps} steps of 2 shards: nothing is wrong"
    assert f"steps {steps}" in lines(result)
    assert any(line.startswith("tenant class weight observed share stated") for line in lines(result))
    assert "problems" not in lines(result)


def test_a_problem_stands_first_with_its_place(tampered: tuple[Path, int]) -> None:
    directory, step = tampered
    result = run(directory)
    assert result.exit_code == 1
    assert lines(result)[0] == "problems"
    assert lines(result)[2].startswith(f"settlements 0 {step} journal ")
    assert "PROBLEM" in lines(result)[-1]


def test_a_program_gets_all_of_it(sound: Path, tampered: tuple[Path, int]) -> None:
    clean, wrong = (orjson.loads(run(each, "--json").stdout) for each in (sound, tampered[0]))
    assert (clean["sound"], clean["problems"]) == (True, [])
    assert 0 < clean["looked_at"]["dispatches"] <= clean["looked_at"]["dispatch records"]
    assert {"class", "tenant", "weight", "observed", "stated", "allowed"} <= clean["shares"][0].keys()
    assert not wrong["sound"]
    first = wrong["problems"][0]
    assert (first["check"], first["shard"], first["step"]) == ("settlements", 0, tampered[1])


def test_an_interval_is_a_duration(sound: Path) -> None:
    assert run(sound, "--interval", "soon").exit_code == 2
