"""The way out of every command, and what starting one costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from streams.cli import entry
from streams.errors import ConfigError, FairstreamError, NotDelivered, NotInstalled, Unavailable

ROOT = Path(entry.__file__).parent.parent.parent
HEAVY = {
    "aiokafka",
    "avro",
    "confluent_kafka",
    "faust",
    "jgo",
    "mode",
    "msgspec",
    "orjson",
    "rich",
    "streams.wire",
    "uvloop",
}


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()


def test_the_tree_of_commands_imports_none_of_their_libraries() -> None:
    loaded = python("import sys, streams.cli.tree; print(' '.join(sys.modules))").split()
    assert HEAVY.isdisjoint(loaded)


def test_a_client_imports_no_faust_and_none_of_the_scheduler() -> None:
    loaded = set(python("import sys, streams.client; print(' '.join(sys.modules))").split())
    assert "confluent_kafka" in loaded
    assert {"aiokafka", "faust", "jgo", "mode", "streams.app", "streams.local", "streams.core.shard"}.isdisjoint(loaded)


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    """Run a command line whose command raises this, and return the exit status."""

    def fail() -> None:
        raise error

    monkeypatch.setattr("streams.cli.tree.app", fail)
    monkeypatch.setattr(sys, "argv", ["fairstream", *arguments])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FairstreamError("broken"), 1),
        (NotDelivered("lost", failed=3), 1),
        (ConfigError("wrong", field="quantum", value=0), 2),
        (NotInstalled("absent"), 2),
        (Unavailable("away"), 75),
    ],
)
def test_an_error_is_one_line_and_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: FairstreamError, status: int
) -> None:
    assert run(monkeypatch, error, "status") == status
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"fairstream: {error}\n")


def test_an_error_as_json_carries_its_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("wrong", field="quantum", value=0, source="p.toml:3")
    assert run(monkeypatch, error, "policy", "check", "--json") == 2
    assert json.loads(capsys.readouterr().err) == {
        "error": "ConfigError",
        "message": "p.toml:3: quantum: wrong (got 0)",
        "field": "quantum",
        "value": 0,
        "source": "p.toml:3",
    }


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**22, "1" + "0" * 22),
        (10**10_000, "a value of type int that is too large to show"),
        (nested(300), "[" * 79 + "…"),
        (nested(100_000), "a value of type list that is too large to show"),
        ({1: "a key that is no text"}, "{1: 'a key that is no text'}"),
        ("half \udcff a pair", "half ? a pair"),
        (Path("no UTF-8: \udcff"), "no UTF-8: ?"),
    ],
    ids=["64 bits", "digits", "deep", "endless", "key", "text", "path"],
)
def test_an_error_as_json_shows_what_json_cannot_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: object, text: str
) -> None:
    error = ConfigError("wrong", field="quantum", value=value, source="p\udcff.toml:3")
    assert run(monkeypatch, error, "policy", "check", "--json") == 2
    shown = json.loads(capsys.readouterr().err)
    assert (shown["value"], shown["source"], shown["field"]) == (text, "p?.toml:3", "quantum")


def test_no_depth_is_too_deep_for_an_error_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for depth in range(240, 270):  # somewhere here is the library's limit, which the error's own braces count towards
        assert run(monkeypatch, ConfigError("wrong", value=nested(depth)), "status", "--json") == 2
        assert json.loads(capsys.readouterr().err)["error"] == "ConfigError"


@pytest.mark.parametrize(
    ("module", "extra"), [("confluent_kafka", "client"), ("faust.transport", "scheduler"), ("jgo", "local")]
)
def test_a_missing_library_is_told_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert run(monkeypatch, error, "status") == 2
    assert f"pip install 'fairstream[{extra}]'" in capsys.readouterr().err


def test_a_missing_module_of_our_own_is_a_bug_and_shows_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ModuleNotFoundError("No module named 'streams.typo'", name="streams.typo")

    monkeypatch.setattr("streams.cli.tree.app", fail)
    with pytest.raises(ModuleNotFoundError):
        entry.main()


@pytest.mark.parametrize("command", ["scheduler", "status", "worker"])
def test_commands_import_what_they_need_only_when_they_run(command: str) -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(['faust', 'confluent_kafka', 'jgo']))"
    code = f"{blocked}; sys.argv = ['fairstream', {command!r}, '--help']; from streams.cli import main; main()"
    assert "Usage:" in python(code)


def test_an_error_that_quotes_others_commands_no_terminal_and_is_json_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "a\x1b[2J\r\u202eb\0"
    assert run(monkeypatch, ConfigError(f"no {nasty}", field=nasty, value=nasty)) == 2
    assert capsys.readouterr().err.rstrip("\n").isprintable()
    assert run(monkeypatch, ConfigError(f"no {nasty}", field=nasty, value=nasty), "--json") == 2
    line = capsys.readouterr().err
    assert "\x1b" not in line
    assert json.loads(line)["value"] == nasty
