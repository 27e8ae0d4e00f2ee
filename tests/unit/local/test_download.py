"""Fetching through jgo, from a mirror on this machine."""

import gc
import hashlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from streams.errors import NotInstalled, Unavailable, Untrusted
from streams.local import jars
from streams.local.lock import Jar, Lock

# jgo does not close an answer that it has no use for.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

BODY = b"a jar"
JAR = Jar(group="org.example", artifact="thing", version="1.0", sha256=hashlib.sha256(BODY).hexdigest())
LOCK = Lock(version="1", jars=(JAR,))


class Mirror(ThreadingHTTPServer):
    """Serves the jar and nothing else; `failures` first answers are errors."""

    daemon_threads = True
    body = BODY
    failures = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/m2/"


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.path == "/m2/org/example/thing/1.0/thing-1.0.jar" and self.server.failures == 0
        self.server.failures = max(0, self.server.failures - 1)
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(self.server.body) if found else 0))
        self.end_headers()
        if found:
            self.wfile.write(self.server.body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jars, "PAUSE_S", 0)
    yield
    gc.collect()  # what jgo left open is found here, not in some later test


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with Mirror() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv(jars.MIRROR_VARIABLE, server.url)
        yield server
        server.shutdown()
        thread.join()


def test_a_jar_comes_from_the_mirror(mirror: Mirror, tmp_path: Path) -> None:
    folder = jars.ensure(LOCK, tmp_path)
    assert (folder / "thing-1.0.jar").read_bytes() == BODY
    assert mirror.asked[0] == "/m2/org/example/thing/1.0/thing-1.0.jar"


def test_one_failure_is_tried_again(mirror: Mirror, tmp_path: Path) -> None:
    mirror.failures = 1
    jars.ensure(LOCK, tmp_path)
    assert mirror.failures == 0


def test_a_mirror_without_it_is_named(mirror: Mirror, tmp_path: Path) -> None:
    mirror.failures = 1_000
    with pytest.raises(Unavailable, match=f"org.example:thing:1.0 could not be fetched from {mirror.url}; check"):
        jars.ensure(LOCK, tmp_path)


def test_a_mirror_that_forges_is_not_believed(mirror: Mirror, tmp_path: Path) -> None:
    mirror.body = b"another jar"
    with pytest.raises(Untrusted):
        jars.ensure(LOCK, tmp_path)


def test_a_mirror_that_is_down_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(jars.MIRROR_VARIABLE, "http://127.0.0.1:9/")
    with pytest.raises(Unavailable, match="ConnectionError"):
        jars.ensure(LOCK, tmp_path)


def test_without_jgo_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(NotInstalled, match=r"fairstream\[local\]"):
        jars.ensure(LOCK, tmp_path)
