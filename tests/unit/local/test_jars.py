"""The cache of jars: complete and verified, or not there."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams.errors import ConfigError, Unavailable, Untrusted
from streams.local import jars
from streams.local.lock import Jar, Lock


def content(name: str) -> bytes:
    return f"the bytes of {name}".encode()


def locked(*names: str) -> Lock:
    return Lock(
        version="1",
        jars=tuple(
            Jar(group="g", artifact=name, version="1", sha256=hashlib.sha256(content(name)).hexdigest())
            for name in names
        ),
    )


class Repository:
    """Serves the right bytes, but for the names in `forged`."""

    def __init__(self, *forged: str) -> None:
        self.forged = forged
        self.served: list[str] = []

    def __call__(self, jar: Jar, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        path = folder / jar.filename
        path.write_bytes(b"something else" if jar.artifact in self.forged else content(jar.artifact))
        self.served.append(jar.artifact)
        return path


def test_each_jar_is_fetched_once(tmp_path: Path) -> None:
    repository, lock = Repository(), locked("a", "b", "c")
    first = jars.ensure(lock, tmp_path, download=repository)
    assert jars.ensure(lock, tmp_path, download=repository) == first
    assert sorted(repository.served) == ["a", "b", "c"]
    assert {path.name for path in first.iterdir()} == {"a-1.jar", "b-1.jar", "c-1.jar"}


def test_a_forged_jar_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    lock = locked("a", "b")
    with pytest.raises(Untrusted, match="g:b:1: the downloaded file has SHA-256"):
        jars.ensure(lock, tmp_path, download=Repository("b"))
    assert not (tmp_path / lock.folder).exists()
    assert [path.name for path in tmp_path.iterdir()] == [f"{lock.folder}.lock"]


def test_a_failed_download_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    lock = locked("a", "b")

    def silent(jar: Jar, folder: Path) -> Path:
        raise Unavailable(f"{jar} is not there, nor is {folder.name}")

    with pytest.raises(Unavailable):
        jars.ensure(lock, tmp_path, download=silent)
    assert jars.ensure(lock, tmp_path, download=Repository()).is_dir()


@pytest.mark.parametrize("damage", ["changed", "missing", "added"])
def test_a_damaged_cache_is_fetched_again(tmp_path: Path, damage: str) -> None:
    repository, lock = Repository(), locked("a", "b")
    folder = jars.ensure(lock, tmp_path, download=repository)
    if damage == "changed":
        (folder / "a-1.jar").write_bytes(b"tampered with")
    elif damage == "missing":
        (folder / "a-1.jar").unlink()
    else:
        (folder / "intruder.jar").write_bytes(b"loaded by a classpath wildcard")
    assert not jars.intact(lock, folder)
    jars.ensure(lock, tmp_path, download=repository)
    assert jars.intact(lock, folder)
    assert len(repository.served) == 4


def test_what_a_killed_download_left_is_removed(tmp_path: Path) -> None:
    lock = locked("a")
    half = tmp_path / f".{lock.folder}-x7" / "jars"
    half.mkdir(parents=True)
    jars.ensure(lock, tmp_path, download=Repository())
    assert {path.name for path in tmp_path.iterdir()} == {lock.folder, f"{lock.folder}.lock"}


@pytest.mark.parametrize("place", ["cache", "cache/below", "target"])
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    lock, cache = locked("a"), tmp_path / "cache"
    if place == "target":
        cache.mkdir()
        (cache / lock.folder).touch()
    else:
        cache.touch()
    with pytest.raises(ConfigError, match="FAIRSTREAM_CACHE"):
        jars.ensure(lock, tmp_path / place if place != "target" else cache, download=Repository())


def test_a_cache_that_is_complete_need_not_be_writable(tmp_path: Path) -> None:
    lock = locked("a")
    folder = jars.ensure(lock, tmp_path, download=Repository())
    (tmp_path / f"{lock.folder}.lock").unlink()
    assert jars.ensure(lock, tmp_path, download=Repository()) == folder
    assert not (tmp_path / f"{lock.folder}.lock").exists(), "it was opened for writing"


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    repository, lock, together = Repository(), locked("a", "b", "c"), threading.Barrier(2)

    def ensure() -> Path:
        together.wait(10)
        return jars.ensure(lock, tmp_path, download=repository)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ensure), pool.submit(ensure)
        assert first.result() == second.result()
    assert sorted(repository.served) == ["a", "b", "c"]


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIRSTREAM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.cache_root() == tmp_path / ".cache" / "fairstream"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jars.cache_root() == tmp_path / "xdg" / "fairstream"
    monkeypatch.setenv("FAIRSTREAM_CACHE", str(tmp_path / "chosen"))
    assert jars.cache_root() == tmp_path / "chosen"
