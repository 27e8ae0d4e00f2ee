"""The command as it is typed, in this process: what it takes, what it prints, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.cli.tree import app
from streams.errors import ConfigError
from streams.simulate.baselines import Fifo
from streams.simulate.contestants import CONTESTANTS
from streams.simulate.scenarios.catalogue import SCENARIOS

QUICK = ["--hours", "0.05", "--schedulers", "ours,fifo"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    lines = [f"{n % 7},{'ab'[n % 2]},{n},{10 * n},{n + 1}" for n in range(60)]
    path.write_text("\n".join(["at_s,tenant,id,input_tokens,output_tokens", *lines]), encoding="utf-8")
    return path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["simulate", *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_what_names_no_command_is_a_scenario() -> None:
    status, out = run("equal", *QUICK)
    assert status == 0
    assert out.startswith("equal: ")
    assert run("compare", "equal", *QUICK) == (status, out)


def test_without_a_name_it_is_meridians_tuesday() -> None:
    status, out = run("--json", *QUICK)
    assert status == 0
    assert json.loads(out)["name"] == "meridian"


def test_the_scenarios_are_listed() -> None:
    status, out = run("--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(SCENARIOS)
    assert [each["name"] for each in json.loads(run("--list", "--json")[1])] == list(SCENARIOS)


def test_the_other_commands_are_still_there() -> None:
    status, out = run("--help")
    assert status == 0
    assert all(f"  {name} " in out for name in ("compare", "faults", "published"))


def test_seed_slots_and_hours() -> None:
    first = json.loads(run("always-large", "--json", "--seed", "1", "--slots", "5", *QUICK)[1])
    assert (first["slots"], first["until_ms"]) == (5, 180_000)
    other = json.loads(run("always-large", "--json", "--seed", "2", "--slots", "5", *QUICK)[1])
    assert first["tokens"] != other["tokens"]


def test_a_policy_gives_the_weights(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("quantum = 500\n\n[tenants.a]\nweight = 3\n", encoding="utf-8")
    found = json.loads(run("equal", "--json", "--policy", str(policy), *QUICK)[1])
    assert found["quantum"] == 500
    assert {each["tenant"]: each["weight"] for each in found["tenants"]} == {"a": 3, "b": 1, "c": 1, "d": 1}


def test_a_trace_with_prices(trace: Path) -> None:
    status, out = run("--trace", str(trace), "--output-price", "2", "--slot-speed", "100", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["runs"], found["tokens_per_s_and_slot"]) == (60, 100)
    assert found["tokens"] == sum(10 * n + 2 * (n + 1) for n in range(60))


def test_a_picture(trace: Path, tmp_path: Path) -> None:
    picture = tmp_path / "p.svg"
    assert run("--trace", str(trace), "--picture", str(picture))[0] == 0
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_a_bound_that_is_broken_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTESTANTS, "ours", lambda _: Fifo())
    status, out = run("weights", "--schedulers", "ours")
    assert status == 1
    assert "NO  the gap" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tuesday"], "scenario"),
        (["--schedulers", "lifo"], "schedulers"),
        (["--slot-speed", "5"], "--slot-speed"),
        (["--compression", "5"], "--compression"),
        (["--output-price", "2"], "--output-price"),
        (["meridian", "--trace", "x.csv"], "not both"),
        (["--trace", "absent.csv"], "absent.csv"),
        (["--hours", "0"], "hours"),
        (["many-shards", "--slots", "2"], "slots"),
        (["--picture", "p.png"], "picture"),
        (["--policy", "absent.toml"], "absent.toml"),
    ],
)
def test_what_must_be_corrected(arguments: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        run(*arguments)
