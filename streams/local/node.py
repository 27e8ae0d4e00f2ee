"""One node: its folder, its format, its process."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from streams.errors import StartFailed
from streams.local import config

_SUPERVISOR: Final = Path(__file__).with_name("supervise.py")
# A clean stop of a broker takes about a second; if its controllers are gone it never ends.
GRACE_S: Final = 10
# The supervisor kills after the grace time; what is more is for the machine to be slow.
_END_DEADLINE_S: Final = GRACE_S + 20
_FORMAT_DEADLINE_S: Final = 60
_LINES_SHOWN: Final = 12
_TELLING: Final = re.compile(r" (ERROR|FATAL) |Exception|^Caused by|^Error")


class Node:
    """A Kafka node that can be started, stopped and killed any number of times."""

    def __init__(
        self,
        spec: config.NodeSpec,
        *,
        java: Path,
        jars: Path,
        jvm_options: Sequence[str],
        remove_if_orphaned: Path | None,
        claims: tuple[int, ...] = (),
    ) -> None:
        self.spec = spec
        self.log_path = spec.folder / "kafka.log"
        self._java = [str(java.absolute()), *jvm_options, "-cp", f"{config.JARS}/*"]
        self._jars = jars
        self._identity = spec.folder / config.DATA / "meta.properties"
        self._remove = remove_if_orphaned
        self._claims = claims
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    @property
    def running(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the broker itself (for SIGSTOP in tests; to end it, use `kill`)."""
        if self._pid is None or not self.running:
            raise StartFailed(f"node {self.spec.node_id} is not running", log=self.log_path)
        return self._pid

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write its settings, and begin a new log; the one of the cluster before stays beside it."""
        self.spec.folder.mkdir(parents=True, exist_ok=True)
        link = self.spec.folder / config.JARS
        link.unlink(missing_ok=True)
        link.symlink_to(self._jars.absolute(), target_is_directory=True)
        if self.log_path.exists():
            self.log_path.replace(self.log_path.with_suffix(".previous.log"))
        (self.spec.folder / config.PROPERTIES).write_text(config.render(settings), encoding="ascii")

    def format(self, cluster_id: str) -> None:
        """Prepare an empty data folder; one that is formatted already keeps its identity."""
        if self.formatted:
            return
        command = [
            *self._java,
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            cluster_id,
            "--config",
            config.PROPERTIES,
            "--feature",
            "share.version=1",
        ]
        with self._log() as log:
            try:
                status = subprocess.run(
                    command,
                    stdout=log,
                    stderr=log,
                    timeout=_FORMAT_DEADLINE_S,
                    check=False,
                    cwd=self.spec.folder,
                    env=_environment(),
                ).returncode
            except subprocess.TimeoutExpired as error:
                raise self.failure(f"formatting its data took over {_FORMAT_DEADLINE_S} s") from error
        if status != 0:
            raise self.failure(f"its data folder could not be formatted (exit status {status})")

    @property
    def formatted(self) -> bool:
        """Whether its data has an identity."""
        return self._identity.exists()

    def cluster_id(self) -> str:
        """The cluster that its data belongs to."""
        lines = self._identity.read_text(encoding="ascii").splitlines()
        return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))

    def start(self) -> None:
        """Start the process; it is not ready yet when this returns."""
        command = [
            sys.executable,
            "-IS",
            str(_SUPERVISOR),
            str(os.getpid()),
            str(GRACE_S),
            str(self._remove or ""),
            *self._java,
            "kafka.Kafka",
            config.PROPERTIES,
        ]
        with self._log() as log:
            # A session of its own: Ctrl-C must reach the owner alone, which stops us in its order.
            self._supervisor = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                pass_fds=self._claims,
                cwd=self.spec.folder,
                env=_environment(),
            )
        assert self._supervisor.stdout is not None
        with self._supervisor.stdout as answer:
            line = answer.readline()
        if not line.strip():
            self._supervisor.wait(_END_DEADLINE_S)
            raise self.failure("Java could not be run")
        self._pid = int(line)

    def stop(self) -> None:
        """End it cleanly; kill it if it has not gone after the grace time."""
        self._order(b"T")

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._order(b"K")

    def failure(self, what: str) -> StartFailed:
        shown = "".join(f"\n    {line}" for line in telling_lines(self.log_lines()))
        message = f"Kafka node {self.spec.node_id}: {what}; its log is {self.log_path}{shown}"
        return StartFailed(message, log=self.log_path)

    def log_lines(self) -> list[str]:
        if not self.log_path.exists():
            return []
        return self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _order(self, order: bytes) -> None:
        supervisor = self._supervisor
        if supervisor is None:
            return
        assert supervisor.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended of itself: there is nobody left to tell
            supervisor.stdin.write(order)
        supervisor.wait(_END_DEADLINE_S)
        supervisor.stdin.close()
        self._supervisor = None
        self._pid = None

    def _log(self) -> IO[bytes]:
        return self.log_path.open("ab")


def _environment() -> dict[str, str]:
    """Our environment, in which the system's errors are in the language that is looked for in the log."""
    return os.environ | {"LC_ALL": "C.UTF-8"}


def telling_lines(lines: Sequence[str]) -> list[str]:
    """The lines of a log that say why: the last errors, or the very last lines if there are none.

    A broker that gives up writes a hundred lines about its orderly shutdown after the one that matters.
    """
    telling = [line for line in lines if _TELLING.search(line)]
    return list(telling or lines)[-_LINES_SHOWN:]
