from pathlib import Path

import pytest

from streams.demo import DemoOptions, entry
from streams.errors import ConfigError, NotInstalled


def test_nothing_is_missing_here() -> None:
    assert entry.missing_extras(local=True) == []


@pytest.mark.parametrize(
    ("absent", "local", "missing"),
    [
        ("faust", True, ["scheduler"]),
        ("jgo", True, ["local"]),
        ("jgo", False, []),
        ("confluent_kafka", False, ["client"]),
    ],
)
def test_what_is_missing_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, absent: str, missing: list[str], *, local: bool
) -> None:
    monkeypatch.setattr(entry, "_installed", lambda name: name != absent)
    assert entry.missing_extras(local=local) == missing


def test_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "_installed", lambda _: False)
    with pytest.raises(NotInstalled, match=r"pip install 'fairstream\[client,scheduler,local\]'"):
        entry.run_demo(DemoOptions())


def test_nothing_is_exported_onto_something(tmp_path: Path) -> None:
    DemoOptions(export=tmp_path)
    DemoOptions(export=tmp_path / "new")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(ConfigError, match="is not empty"):
            DemoOptions(export=taken)
