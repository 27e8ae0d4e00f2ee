"""Who may use a data folder, and what is left of it."""

from pathlib import Path

import pytest

from streams.errors import ConfigError, StartFailed
from streams.local.folder import Folder


def filled(folder: Folder) -> Path:
    node = folder.root / "node-1"
    (node / "data").mkdir(parents=True)
    (node / "data" / "segment").touch()
    (node / "kafka.log").touch()
    return node


def test_a_temporary_folder_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Folder.temporary_one()
    filled(folder)
    folder.release(keep_logs=False)
    assert list(tmp_path.iterdir()) == []


def test_logs_stay_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Folder.temporary_one()
    node = filled(folder)
    folder.release(keep_logs=True)
    assert [path.name for path in node.iterdir()] == ["kafka.log"]


def test_without_logs_there_is_nothing_to_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Folder.temporary_one().release(keep_logs=True)
    assert list(tmp_path.iterdir()) == []


def test_a_chosen_folder_stays(tmp_path: Path) -> None:
    folder = Folder.chosen(tmp_path / "new" / "data")
    node = filled(folder)
    folder.release(keep_logs=False)
    assert (node / "data" / "segment").exists()


@pytest.mark.parametrize("name", ["file", "file/below", "~nobody-of-that-name/data"])
def test_a_folder_that_cannot_be_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=name):
        Folder.chosen(Path(name) if name.startswith("~") else tmp_path / name)


def test_a_claimed_folder_is_refused_until_it_is_released(tmp_path: Path) -> None:
    first = Folder.chosen(tmp_path)
    with pytest.raises(StartFailed, match="is in use by another local Kafka"):
        Folder.chosen(tmp_path, deadline_s=0)
    first.release(keep_logs=False)
    Folder.chosen(tmp_path, deadline_s=0).release(keep_logs=False)
