"""Kafka's jars: fetched once, verified against the lock, cached for the user.

A cache folder appears by one rename, complete and verified, so a reader never sees half of one.
Two processes that start at once are kept apart by a file lock, which the system releases when its
holder dies. What is in the cache is verified again at every start (about 0.1 s): a jar is code.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streams import clock
from streams.errors import ConfigError, NotInstalled, Unavailable, Untrusted
from streams.local import progress
from streams.local.lock import Jar, Lock

# Gets one jar into the folder and returns the file, wherever in the folder it is.
Download = Callable[[Jar, Path], Path]

PARALLEL: Final = 6
ATTEMPTS: Final = 3
PAUSE_S = 1.0  # before a second attempt, twice that before a third: a busy repository needs a moment
TIMEOUT_S: Final = 60  # for one answer of the repository, not for a whole file
CACHE_VARIABLE: Final = "FAIRSTREAM_CACHE"
MIRROR_VARIABLE: Final = "FAIRSTREAM_MAVEN_MIRROR"


def cache_root() -> Path:
    """Where downloads are kept: FAIRSTREAM_CACHE, or `fairstream` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fairstream"


def ensure(lock: Lock, root: Path | None = None, *, download: Download | None = None) -> Path:
    """Return the folder that holds exactly the locked jars, verified; fetch them if need be.

    Raises `Untrusted` if a fetched file has another checksum (nothing is kept), `Unavailable` if the
    repository does not answer, and `ConfigError` if the cache cannot be written.
    """
    root = root or cache_root()
    target = root / lock.folder
    try:
        if not intact(lock, target):
            root.mkdir(parents=True, exist_ok=True)
            with _only_one(root / f"{lock.folder}.lock"):
                if not intact(lock, target):  # else the one before us has done it
                    _fill(lock, root, target, download or _from_maven)
    except OSError as error:
        raise ConfigError(
            f"downloads cannot be kept in {root}: {error}; set {CACHE_VARIABLE} to a folder of yours"
        ) from error
    return target


def _fill(lock: Lock, root: Path, target: Path, download: Download) -> None:
    prefix = f".{lock.folder}-"
    for left_behind in root.glob(f"{prefix}*"):  # by one that was killed: nobody else works here now
        shutil.rmtree(left_behind)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=root) as scratch:
        staged = _fetch(lock, Path(scratch), download)
        if target.is_dir():  # damaged, or it would have been taken
            shutil.rmtree(target)
        staged.rename(target)


def intact(lock: Lock, folder: Path) -> bool:
    """Whether the folder holds every locked jar with its checksum, and no other."""
    if not folder.is_dir():
        return False
    if {path.name for path in folder.iterdir()} != {jar.filename for jar in lock.jars}:
        return False
    return all(sha256(folder / jar.filename) == jar.sha256 for jar in lock.jars)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(lock: Lock, scratch: Path, download: Download) -> Path:
    staged = scratch / "jars"
    staged.mkdir()
    title = f"Apache Kafka {lock.version}"
    with (
        progress.counting(title, len(lock.jars), unit="jars") as advance,
        ThreadPoolExecutor(PARALLEL, thread_name_prefix="jars") as pool,
    ):
        jobs = {pool.submit(download, jar, scratch / "repository"): jar for jar in lock.jars}
        try:
            for job in as_completed(jobs):
                jar = jobs[job]
                _verify(jar, job.result()).rename(staged / jar.filename)
                advance()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return staged


def _verify(jar: Jar, path: Path) -> Path:
    actual = sha256(path)
    if actual != jar.sha256:
        path.unlink()
        raise Untrusted(
            f"{jar}: the downloaded file has SHA-256 {actual}, the lock says {jar.sha256}; "
            "it was not used: try again, and if it stays so, do not trust the mirror it came from"
        )
    return path


def _from_maven(jar: Jar, repository: Path) -> Path:
    """Fetch one jar with jgo: the lock names every artifact, so nothing is left to resolve."""
    try:
        import requests  # noqa: PLC0415 - only the `local` extra has it, and only a first start needs it
        from jgo.maven import MavenContext  # noqa: PLC0415
    except ImportError as error:
        raise NotInstalled(
            "fetching Kafka needs the `local` extra: pip install 'fairstream[local]', or give "
            "the address of a running Kafka instead"
        ) from error
    mirror = os.environ.get(MIRROR_VARIABLE)
    context = MavenContext(
        repo_cache=repository,
        remote_repos={"mirror": mirror.rstrip("/")} if mirror else None,
        timeout=TIMEOUT_S,
    )
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    last: Exception | None = None
    for attempt in range(ATTEMPTS):
        clock.pause(attempt * PAUSE_S)
        try:
            path = context.resolver.download(artifact)
        except (requests.RequestException, RuntimeError) as error:  # jgo: RuntimeError is "not found"
            last = error
            if artifact.cached_path is not None:
                artifact.cached_path.unlink(missing_ok=True)  # jgo refuses to overwrite half a file
        else:
            assert path is not None
            return Path(path)
    raise Unavailable(
        f"{jar} could not be fetched from {mirror or 'Maven Central'}; check the network, or set "
        f"{MIRROR_VARIABLE} to the address of a mirror ({type(last).__name__}: {last})"
    ) from last


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the file stays, since removing it would let two in."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("another process is fetching Kafka; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
