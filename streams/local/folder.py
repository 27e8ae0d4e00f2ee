"""The folder that a cluster keeps its nodes in: a temporary one, or one that was chosen and is claimed."""

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO, Final, Self

from streams import clock
from streams.errors import ConfigError, StartFailed
from streams.local.config import DATA, JARS

# The brokers of an owner that was killed a moment ago need this long to close their data.
CLAIM_DEADLINE_S: Final = 15.0


class Folder:
    """Where the data is. A chosen folder has one owner at a time: two brokers would destroy it."""

    def __init__(self, root: Path, *, temporary: bool, claim: IO[bytes] | None = None) -> None:
        self.root = root
        self.temporary = temporary
        self._claim = claim

    @classmethod
    def temporary_one(cls) -> Self:
        return cls(Path(tempfile.mkdtemp(prefix="fairstream-kafka-")).resolve(), temporary=True)

    @classmethod
    def chosen(cls, path: Path, *, deadline_s: float = CLAIM_DEADLINE_S) -> Self:
        """Claim `path`, which is created if need be.

        Raises `StartFailed` if it stays claimed, `ConfigError` if nothing can be written there.
        """
        try:
            root = path.expanduser().resolve()
            root.mkdir(parents=True, exist_ok=True)
            claim = (root / ".claim").open("ab")
        except (OSError, RuntimeError) as error:  # RuntimeError: no such user's home
            raise ConfigError(f"cannot hold data: {error}", field="data_dir", value=str(path)) from error
        try:
            clock.wait_until(lambda: _locked(claim), deadline_s)
        except TimeoutError as error:
            claim.close()
            raise StartFailed(
                f"{root} is in use by another local Kafka: end that one, or choose another folder"
            ) from error
        return cls(root, temporary=False, claim=claim)

    @property
    def nodes(self) -> int:
        """How many nodes have been here before."""
        return len(list(self.root.glob("node-*")))

    @property
    def claims(self) -> tuple[int, ...]:
        """File descriptors that a supervisor inherits: the claim lasts as long as any of its holders."""
        return () if self._claim is None else (self._claim.fileno(),)

    def release(self, *, keep_logs: bool) -> None:
        """Delete what is temporary (but for the logs, if asked), and give up the claim."""
        if self.temporary and keep_logs and any(self.root.glob("*/*.log")):
            for node in self.root.glob("node-*"):
                shutil.rmtree(node / DATA, ignore_errors=True)
                (node / JARS).unlink(missing_ok=True)
        elif self.temporary:
            shutil.rmtree(self.root)
        if self._claim is not None:
            self._claim.close()


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
